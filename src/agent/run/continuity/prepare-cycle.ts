import { isoTime } from "../../../shared/clock.ts";
import { maxSkippedLines } from "../../bounds.ts";
import { tokensOf } from "../../context/blocks.ts";
import { eventLine, renderInboxMessage } from "../../context/consciousness/inbox-message.ts";
import { toldState } from "../../context/consciousness/state.ts";
import type { Batch } from "../../inbox/inbox.ts";
import type { InboxRow } from "../../schema.ts";
import { composingOf, nextWindow } from "../composing.ts";
import { shownOwnBlocks } from "../known-blocks.ts";
import { inputsIn } from "../run-rows.ts";
import type { RunServices } from "../run-services.ts";

/** One line per event of the cycles that ended in silence since the last kept one, oldest first. */
const silentLines = (services: RunServices, ordinal: number): { lines: string[]; omitted: number } => {
  const { rows, events } = services.runs.silent(ordinal, maxSkippedLines);
  // Its inbox message is the first row of each.
  const firstRows = rows.reverse().flatMap((run) => services.journal.ofRun(run, run.journalFrom));
  const lines = inputsIn(firstRows).flatMap((input) => input.lines);
  const shown = lines.slice(-maxSkippedLines);
  return { lines: shown, omitted: events - shown.length };
};

/** The share of a model's input that a batch of events may fill. The rest is for the state, the past and the run. */
const batchShare = 0.5;

/** The events that a cycle which began now would take. */
export const nextBatch = (services: RunServices): Batch => {
  const { config, correction } = composingOf(services);
  const budget = (config.context.maxTokens - config.context.reservedResponseTokens) / correction;
  return services.inbox.nextBatch(budget * batchShare);
};

/** The beginning of a cycle that began now with this batch. Nothing is written. `ordinal` is that of the run. */
export const prepareCycle = (services: RunServices, batch: InboxRow[], ordinal: number) => {
  const agent = services.identity.get();
  const { config } = composingOf(services);
  const events = batch.map(({ data }) => data);
  const blocks = shownOwnBlocks(services, config, events);
  const window = nextWindow(services, "consciousness", ordinal, blocks.shown);
  const spaces = services.spaces.mine();
  const state = {
    agentId: agent.id,
    spaces,
    goals: services.goals.list(),
    memories: services.memories.list(),
    plans: services.plans.list(),
    blocks,
  };
  const told = toldState(state, config.context.memoryTokens - tokensOf(blocks.shown));
  const active = spaces.find((space) => space.id === agent.activeSpaceId);
  const history = services.spaces.leftToHistory();
  const text = renderInboxMessage({
    now: isoTime(services.clock.now()),
    events,
    leftToHistory: history,
    silent: silentLines(services, ordinal),
    told,
    toldBefore: services.windows.toldBefore(window, ordinal),
    blocks: { shown: blocks.shown, head: window.blocks },
    activeSpace: active ? { id: active.id, name: active.name } : null,
  });
  return {
    ...{ ordinal, batch, window, told, text },
    /** Its own blocks as the model reads them, and those that did not fit, or not whole. */
    blocks: blocks.shown,
    withheld: blocks.dropped,
    lines: events.map(eventLine),
    /** How many messages of which spaces it says to be in their history only. */
    history,
    activeSpaceId: active?.id ?? null,
  };
};
