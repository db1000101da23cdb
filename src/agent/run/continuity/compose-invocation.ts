import { compose } from "../../context/compose.ts";
import { quoteJson } from "../../context/quote.ts";
import type { Composed } from "../../context/sections.ts";
import type { TimelineSnapshot } from "../../context/timeline/snapshot.ts";
import { estimateMessages, estimateText } from "../../context/tokens.ts";
import { messagesOf } from "../../journal.ts";
import type { InboxMeta } from "../../records.ts";
import { windowOf } from "../composing.ts";
import { shownOf } from "../run-events.ts";
import { inputsIn, invocationOf } from "../run-rows.ts";
import type { LiveRun } from "../run-services.ts";
import { gatherTimeline, messagesIn, wantSummaries } from "./gather-timeline.ts";

/**
 * The input of a timeline run's next invocation.
 *
 * Invariants
 * 1. The input is journaled as it was composed, in one transaction: a replay reads the same bytes (R3).
 * 2. A run is composed again at most once because its input was too long. Its journal says so (R4).
 */
type Input = { snapshot: TimelineSnapshot; composed: Composed };

/** `refused`: estimated tokens of an input that the model refused as too long. */
const inputFor = async (
  { services, run, signal }: LiveRun,
  step: number,
  activeSpaceId: string | null,
  refused?: number,
): Promise<Input> => {
  const row = services.inbox.byEventId(run.trigger.eventId);
  if (!row) throw new Error(`run ${run.id} has no event`);
  const resumed = step === 0 ? null : { run, activeSpaceId };
  const gathered = await gatherTimeline(services, windowOf(services, run), row.data, run.ordinal, signal, resumed);
  signal.throwIfAborted();
  const snapshot = { ...gathered, refused };
  return { snapshot, composed: compose(snapshot) };
};

/** Journals the input. `more`: further facts for its first row. */
const journal = (
  { services, run }: LiveRun,
  step: number,
  { snapshot, composed }: Input,
  more: Pick<InboxMeta, "shortened"> = {},
): void => {
  const shown = snapshot.histories.flatMap(({ space, entries }) => shownOf(space.id, messagesIn(entries)));
  const sections = composed.sections.map(({ name, tokens }) => ({ name, tokens }));
  const made = { sections, dropped: composed.dropped };
  const { soFar: _, ...answers } = snapshot.resume ?? { soFar: [] };
  const first = { made, ...("replies" in answers ? { answers } : {}), ...more };
  wantSummaries(services, composed);
  if (step > 0) services.waits.endOf(run.ordinal);
  for (const [index, message] of composed.messages.entries()) {
    services.journal.append({
      runOrdinal: run.ordinal,
      step,
      kind: "inbox",
      content: message,
      meta: { kind: "inbox", lines: [quoteJson(snapshot.trigger)], shown, ...(index === 0 ? first : {}) },
    });
  }
};

/** Composes and journals the invocation's input. */
export const composeInvocation = async (live: LiveRun, step: number, activeSpaceId: string | null): Promise<void> => {
  const input = await inputFor(live, step, activeSpaceId);
  live.services.transaction(() => journal(live, step, input));
};

/**
 * The model refused the input as too long: the run goes on in a fresh and shorter invocation, as after a wait. False if
 * that was done in this run before, or if the input would not become shorter.
 */
export const composeShorter = async (live: LiveRun, step: number, activeSpaceId: string | null): Promise<boolean> => {
  const { services, run } = live;
  const rows = services.journal.ofRun(run);
  if (inputsIn(rows).some(({ shortened }) => shortened)) return false;
  const instructions = estimateText(windowOf(services, run).instructions);
  const refused = instructions + estimateMessages(messagesOf(invocationOf(rows)));
  const input = await inputFor(live, step, activeSpaceId, refused);
  // The model has not acted on reminders that came after the last step.
  const sinceStep = rows.slice(rows.findLastIndex(({ kind }) => kind === "assistant") + 1);
  const again = sinceStep.filter(({ kind }) => kind === "preview");
  const shorter = instructions + estimateMessages([...input.composed.messages, ...messagesOf(again)]);
  if (shorter >= refused) return false;
  services.transaction(() => {
    journal(live, step, input, { shortened: true });
    for (const { kind, content, meta } of again) {
      services.journal.append({ runOrdinal: run.ordinal, step, kind, content, meta });
    }
  });
  return true;
};
