import type { ModelMessage } from "ai";
import { adapters } from "../models/adapt.ts";
import type { ContextView } from "../protocol/run.ts";
import { compose } from "./context/compose.ts";
import { limitsOf } from "./context/limits.ts";
import { prefixReuse } from "./context/prefix.ts";
import type { Snapshot } from "./context/snapshot.ts";
import type { ActiveRun } from "./context/timeline/snapshot.ts";
import type { InboxRow } from "./inbox.ts";
import type { InboxData } from "./records.ts";
import { nextEvent, triggerOf } from "./think/begin.ts";
import { type Composing, composingOf } from "./think/composing.ts";
import type { Parts } from "./think/parts.ts";
import { nextBatch, prepare } from "./think/prepare.ts";
import { begunBy, gatherTimeline } from "./think/timeline.ts";

/** What would be composed, and the events that it would begin with. */
type Next = { snapshot: Snapshot; events: InboxRow[] };

const viewTimeoutMs = 10_000;

/** Shown where nothing waits: a timeline's run needs something to begin with. */
const nothingWaits = {
  type: "service",
  serviceName: "(nothing waits)",
  payload: null,
  root: { id: "", kind: "service" },
} satisfies InboxData;

const nextTimeline = async (parts: Parts, { config }: Composing): Promise<Next> => {
  const row = nextEvent(parts);
  const events = row ? [row] : [];
  const ordinal = parts.runs.nextOrdinal();
  const signal = AbortSignal.timeout(viewTimeoutMs);
  const snapshot = await gatherTimeline(parts, config, row?.data ?? nothingWaits, ordinal, signal);
  // The run that would come is among the active ones that it reads of.
  const itself: ActiveRun = {
    runId: parts.ids.deriveOwned("run", snapshot.state.agentId, ordinal),
    status: "running",
    isThis: true,
    begunBy: row ? begunBy(parts, triggerOf(events)) : { type: "service", name: nothingWaits.serviceName, text: "" },
  };
  return { snapshot: { ...snapshot, activeRuns: [...snapshot.activeRuns, itself] }, events };
};

const nextCycle = (parts: Parts, { config }: Composing): Next => {
  const { rows: events } = nextBatch(parts);
  const { window, told, withheld, ordinal, text } = prepare(parts, events, parts.runs.nextOrdinal());
  const past = parts.consciousness.past(window.firstRun, ordinal);
  const own: ModelMessage[] = [{ role: "user", content: text }];
  return { snapshot: { continuity: "consciousness", config, window, told, withheld, past, own }, events };
};

/** How much of the newest run's last input the next one repeats; it was compared as it was journaled. */
const reuseOf = (parts: Parts, next: { instructions: string; messages: ModelMessage[] }): { prefixReuse?: number } => {
  const newest = parts.runs.newest();
  const before = newest ? parts.consciousness.lastInput(newest) : null;
  return before ? { prefixReuse: prefixReuse(before, next) } : {};
};

/** What the next run's input would be, whether or not anything wakes it now. Writes nothing. */
export const contextView = async (parts: Parts): Promise<ContextView> => {
  const composing = composingOf(parts);
  const isTimeline = composing.config.continuity === "timeline";
  const { snapshot, events } = isTimeline ? await nextTimeline(parts, composing) : nextCycle(parts, composing);
  const { instructions, messages, sections, tokens, dropped } = compose(snapshot, composing.correction);
  return {
    ...(events.length === 0 ? {} : { trigger: triggerOf(events) }),
    instructions,
    messages: adapters[composing.model.family](messages),
    sections,
    tokens,
    dropped,
    limits: limitsOf(composing.config),
    ...reuseOf(parts, { instructions, messages }),
  };
};
