import { renderInboxPreview } from "../../context/consciousness/inbox-message.ts";
import { leave } from "../../inbox/dead-letters.ts";
import type { JournalRow } from "../../journal.ts";
import { ordinalAfter, type RunRow } from "../../runs.ts";
import { partsIn } from "../composing.ts";
import type { RunServices } from "../run-services.ts";
import { beginRun } from "./begin-run.ts";
import { compactForRun } from "./compact.ts";
import type { Continuity } from "./continuity.ts";
import { newsOfOthers, tellingsOf, tellPeerUpdates } from "./peer-updates.ts";
import { nextBatch, prepareCycle } from "./prepare-cycle.ts";

const previewEvents = 10;

/** Begins a cycle, if a waiting event may wake this agent. One transaction stores the run and its inbox message. */
const begin = (services: RunServices, newest: RunRow | undefined): RunRow | undefined => {
  if (!services.inbox.nextWaking()) return undefined;
  const { rows: batch, passed } = nextBatch(services);
  if (batch.length === 0) return undefined;
  return services.transaction(() => {
    leave(services, passed);
    const prepared = prepareCycle(services, batch, ordinalAfter(newest));
    const { withheld, history, lines, text } = prepared;
    const run = beginRun(services, newest, prepared);
    services.journal.append({
      runOrdinal: run.ordinal,
      step: 0,
      kind: "inbox",
      content: { role: "user", content: text },
      meta: {
        ...{ kind: "inbox", lines },
        ...(withheld.length === 0 ? {} : { dropped: withheld }),
        ...(history.length === 0 ? {} : { history }),
      },
    });
    return run;
  });
};

/** Shows each event that arrived during the cycle once. The text is kept in the journal, since the model acts on it. */
const preview = (services: RunServices, run: RunRow, step: number, rows: JournalRow[]): void => {
  const shownTo = rows.reduce(
    (upTo, row) => (row.meta?.kind === "preview" ? Math.max(upTo, row.meta.upTo) : upTo),
    Math.max(0, ...run.events),
  );
  const arrived = services.inbox.arrivedAfter(shownTo, previewEvents);
  const newest = arrived.rows.at(-1);
  if (!newest) return;
  const events = arrived.rows.map(({ data }) => data);
  const text = renderInboxPreview(events, arrived.total);
  services.journal.tell(run.ordinal, step, text, { kind: "preview", upTo: newest.seq });
};

/** One cycle at a time, over everything that waits, with the earlier cycles as its past. */
export const consciousness: Continuity = {
  maxRuns: () => 1,
  runsAlone: true,
  waitsForAnswers: false,
  keepsRuns: true,
  marksSeen: false,
  takeOver: () => undefined,
  begin,
  compose: () => {
    throw new Error("a cycle's input is journaled as it begins");
  },
  beforeFirstStep: tellPeerUpdates,
  beforeStep: preview,
  past: (services, { firstRun }, run) => services.windows.past(firstRun, run.ordinal),
  shorten: async ({ services, run }, step) => compactForRun(services, run, step, true),
  next: async (services, composing, signal) => {
    const { rows: events } = nextBatch(services);
    const prepared = prepareCycle(services, events, services.runs.nextOrdinal());
    const { window, told, ordinal } = prepared;
    const before = {
      told: () => services.windows.toldBefore(window, ordinal),
      events: () => events.map(({ data }) => data),
    };
    const news = await newsOfOthers(services, before, signal);
    const tellings = tellingsOf(news);
    return {
      snapshot: {
        ...partsIn(services, window, composing),
        continuity: "consciousness",
        ...{ window, told, tellings },
        past: services.windows.past(window.firstRun, ordinal),
        own: [{ role: "user", content: prepared.text }, ...tellings.map(({ message }) => message)],
        withheld: [...prepared.withheld, ...news.flatMap(({ dropped }) => dropped)],
      },
      blocks: [...prepared.blocks, ...news.flatMap(({ blocks }) => blocks)],
      events,
    };
  },
};
