import { isoTime } from "../../shared/clock.ts";
import { maxSkippedLines } from "../bounds.ts";
import { type ShownBlock, tokensOf } from "../context/blocks.ts";
import type { Dropped } from "../context/composed.ts";
import { eventLine, renderInboxMessage } from "../context/consciousness/inbox-message.ts";
import { toldState } from "../context/consciousness/state.ts";
import type { ToldState } from "../context/snapshot.ts";
import { asEvent, type Batch, type InboxRow } from "../inbox/inbox.ts";
import type { LeftToHistory } from "../records.ts";
import { toolsetOf } from "../tools/toolset.ts";
import { composingOf } from "./composing.ts";
import type { WindowRow } from "./consciousness.ts";
import { headOf } from "./head.ts";
import { shownOwnBlocks } from "./known-blocks.ts";
import type { Parts } from "./parts.ts";

/** What a run that began now would begin with. Reads only; `begin` writes it, `GET context` shows it. */
export type Prepared = {
  ordinal: number;
  batch: InboxRow[];
  window: WindowRow;
  told: ToldState;
  /** Its own blocks, as the model reads them. */
  blocks: ShownBlock[];
  /** What of its blocks did not fit. */
  withheld: Dropped[];
  lines: string[];
  /** What it says of messages that were left to their space's history. */
  history: LeftToHistory[];
  text: string;
  activeSpaceId: string | null;
};

/** One line per event of the cycles that ended in silence since the last kept one, oldest first. */
const silentLines = (parts: Parts, ordinal: number): { lines: string[]; omitted: number } => {
  const { rows, events } = parts.runs.silent(ordinal, maxSkippedLines);
  const lines = rows
    .reverse()
    .flatMap((run) => parts.journal.ofRun(run, run.journalFrom))
    .flatMap((row) => (row.meta?.kind === "inbox" ? row.meta.lines : []));
  const shown = lines.slice(-maxSkippedLines);
  return { lines: shown, omitted: events - shown.length };
};

/** Share of a model's input that events may fill at once: what else it reads, and the run itself, need the rest. */
const batchShare = 0.5;

/** The events that a cycle which began now would take. */
export const nextBatch = (parts: Parts): Batch => {
  const { config, correction } = composingOf(parts);
  const budget = (config.context.maxTokens - config.context.reservedResponseTokens) / correction;
  return parts.inbox.nextBatch(budget * batchShare, parts.identity.get().config.limits.maxWakesPerRoot);
};

/** `ordinal` is that of the run. */
export const prepare = (parts: Parts, batch: InboxRow[], ordinal: number): Prepared => {
  const agent = parts.identity.get();
  const { config } = composingOf(parts);
  const blocks = shownOwnBlocks(
    parts,
    config,
    batch.map(({ data }) => data),
  );
  const window = parts.consciousness.windowFor(
    headOf(parts, blocks.shown),
    toolsetOf(agent.config, parts.mcp.newestList()),
    ordinal,
    "consciousness",
  );
  const spaces = parts.spaces.mine();
  const state = {
    agentId: agent.id,
    spaces,
    goals: parts.goals.list(),
    memories: parts.memories.list(),
    plans: parts.plans.list(),
    blocks,
  };
  const told = toldState(state, config.context.memoryTokens - tokensOf(blocks.shown));
  const active = spaces.find((space) => space.id === agent.activeSpaceId);
  const events = batch.map(asEvent);
  const history = parts.spaces.leftToHistory();
  const text = renderInboxMessage({
    now: isoTime(parts.clock.now()),
    events,
    leftToHistory: history,
    silent: silentLines(parts, ordinal),
    told,
    toldBefore: parts.consciousness.toldBefore(window, ordinal),
    blocks: { shown: blocks.shown, head: window.blocks },
    activeSpace: active ? { id: active.id, name: active.name } : null,
  });
  return {
    ordinal,
    batch,
    window,
    told,
    blocks: blocks.shown,
    withheld: blocks.dropped,
    lines: events.map(eventLine),
    history,
    text,
    activeSpaceId: active?.id ?? null,
  };
};
