import { compose } from "../../context/compose.ts";
import type { Composed } from "../../context/composed.ts";
import { quoteJson } from "../../context/quote.ts";
import type { TimelineSnapshot } from "../../context/timeline/snapshot.ts";
import { estimateMessages, estimateText } from "../../context/tokens.ts";
import { type JournalRow, messagesOf } from "../../journal.ts";
import type { InboxMeta } from "../../records.ts";
import type { RunRow } from "../../runs.ts";
import { composingOf, partsFor } from "../composing.ts";
import { invocationOf } from "../invocation.ts";
import type { RunServices } from "../run-services.ts";
import { shownOf } from "../seen-in.ts";
import { gatherTimeline, wantSummaries } from "./gather-timeline.ts";

/**
 * The input of a timeline run's next invocation.
 *
 * Invariants
 * 1. It is journaled as it was composed, in one transaction, so that a replay reads the same bytes (R3).
 * 2. Because of its length a run is composed again once: its journal says so, whatever cut it since (R4).
 */
type Input = { snapshot: TimelineSnapshot; composed: Composed };

/** `refused`: estimated tokens of an input that the model refused as too long. */
const inputFor = async (
  services: RunServices,
  run: RunRow,
  step: number,
  activeSpaceId: string | null,
  signal: AbortSignal,
  refused?: number,
): Promise<Input> => {
  const row = services.inbox.byEventId(run.trigger.eventId);
  if (!row) throw new Error(`run ${run.id} has no event`);
  const composing = composingOf(services);
  const gathered = await gatherTimeline(
    services,
    { ...partsFor(services, run, composing), config: composing.config },
    row.data,
    run.ordinal,
    signal,
    step === 0 ? null : { run, activeSpaceId },
  );
  signal.throwIfAborted();
  const snapshot = { ...gathered, refused };
  return { snapshot, composed: compose(snapshot) };
};

/** `more`: what its first row says beside that. */
const journal = (
  services: RunServices,
  run: RunRow,
  step: number,
  { snapshot, composed }: Input,
  more: Pick<InboxMeta, "shortened"> = {},
): void => {
  const shown = snapshot.histories.flatMap(({ space, entries }) =>
    shownOf(
      space.id,
      entries.flatMap((entry) => (entry.kind === "message" ? [entry.message] : [])),
    ),
  );
  const made = {
    sections: composed.sections.map(({ name, tokens }) => ({ name, tokens })),
    dropped: composed.dropped,
  };
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

/** Composes the input of a run's next invocation, which begins with this step, and journals it. */
export const composeInvocation = async (
  services: RunServices,
  run: RunRow,
  step: number,
  activeSpaceId: string | null,
  signal: AbortSignal,
): Promise<void> => {
  const input = await inputFor(services, run, step, activeSpaceId, signal);
  services.transaction(() => journal(services, run, step, input));
};

/** What the rules said after the last step: the model has not acted on it. */
const unheeded = (rows: JournalRow[]): JournalRow[] =>
  rows.slice(rows.findLastIndex(({ kind }) => kind === "assistant") + 1).filter(({ kind }) => kind === "preview");

/**
 * The model refused the input of this step as too long: the run goes on with it in a fresh and shorter invocation, as
 * it does after a wait. False if that was done in this run before, or nothing would be shorter by it.
 */
export const composeShorter = async (
  services: RunServices,
  run: RunRow,
  step: number,
  activeSpaceId: string | null,
  signal: AbortSignal,
): Promise<boolean> => {
  const all = services.journal.ofRun(run);
  if (all.some(({ meta }) => meta?.kind === "inbox" && meta.shortened)) return false;
  const rows = invocationOf(all);
  const instructions = estimateText(services.windows.window(run.windowId)?.instructions ?? "");
  const refused = instructions + estimateMessages(messagesOf(rows));
  const input = await inputFor(services, run, step, activeSpaceId, signal, refused);
  const again = unheeded(rows);
  const shorter = instructions + estimateMessages([...input.composed.messages, ...messagesOf(again)]);
  if (shorter >= refused) return false;
  services.transaction(() => {
    journal(services, run, step, input, { shortened: true });
    for (const { kind, content, meta } of again) {
      services.journal.append({ runOrdinal: run.ordinal, step, kind, content, ...(meta ? { meta } : {}) });
    }
  });
  return true;
};
