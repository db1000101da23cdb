import { maxRecentCharacters, maxRecentDeeds, maxRecentRuns, maxRecentRunsTokens } from "../../bounds.ts";
import { type BegunBy, begunByLine, type Deed, deedLine, ownNotes } from "../deeds.ts";
import { type Cut, keepFitting, linesTokens, lineTokens, sectionOf } from "../sections.ts";
import { shortTime } from "../wording.ts";

/** A run of this agent that has ended, and what it did. */
export type PastRun = {
  runId: string;
  /** When it ended, ISO 8601. */
  at: string;
  /** How: its status, and why. */
  end: string;
  begunBy: BegunBy;
  /** The events that began the runs that it absorbed. */
  tookOver: BegunBy[];
  /** It brought the result of an earlier call, which is news even if it did nothing. */
  isResult: boolean;
  deeds: Deed[];
  /** This entry is a message, not a run. People of a confidential space let it out. */
  letOut?: true;
};

/** The newest ended runs, oldest first, and how many lie before them; `unfed`: those that a compartment was not told of. */
export type PastRuns = { runs: PastRun[]; earlier: number; unfed?: number };

const heading = "RECENT RUNS (yours; what they did stands nowhere else here):";

const left = (count: number, what: string): string => `${count} earlier ${what}${count === 1 ? "" : "s"}`;
const isOrAre = (count: number): string => (count === 1 ? "is" : "are");
const note = (count: number): string =>
  `  (${left(count, "run")} ${isOrAre(count)} not shown: get_my_runs has ${count === 1 ? "it" : "them"})`;

const linesOf = ({ runId, at, end, begunBy, tookOver, deeds, letOut }: PastRun): string[] => {
  const causes = [begunBy, ...tookOver].map((each) => begunByLine(each, maxRecentCharacters));
  const shown = deeds.slice(-maxRecentDeeds);
  const before = deeds.length - shown.length;
  return [
    `  - [${shortTime(at)}] ${letOut ? ownNotes.let_out : `${runId} (${end}) — ${causes.join("; took over ")}`}`,
    ...(before === 0 ? [] : [`      (${left(before, "action")} ${isOrAre(before)} not shown: get_my_runs has them)`]),
    ...shown.map((deed) => `      You: ${deedLine(deed, maxRecentCharacters)}`),
  ];
};

/**
 * The newest runs that did something of which this input shows nothing else, newest last, within `room`. `standing`: the
 * ids of the calls and messages that the histories show.
 */
export const recentRunsSection = (
  { runs, earlier, unfed = 0 }: PastRuns,
  standing: ReadonlySet<string>,
  room: number,
): Cut => {
  const isUntold = (deed: Deed): boolean =>
    !standing.has(deed.callId) && !(deed.kind === "sent" && standing.has(deed.messageId));
  const untold = runs
    .map((run) => ({ ...run, deeds: run.deeds.filter(isUntold) }))
    .filter(({ deeds, isResult }) => deeds.length > 0 || isResult);
  const items = untold.slice(-maxRecentRuns).map(linesOf);
  const free = Math.min(room, maxRecentRunsTokens) - lineTokens(heading) - lineTokens(note(earlier));
  const kept = keepFitting(items.map(linesTokens), free);
  const lines = items.filter((_, index) => kept.has(index)).flat();
  const cut = untold.length - kept.size;
  const unshown = cut + earlier;
  const notes = [
    ...(unshown === 0 ? [] : [note(unshown)]),
    ...(unfed === 0 ? [] : [`  (${unfed} earlier runs of yours outside of this space were too many to be told here)`]),
  ];
  return {
    section: sectionOf("recent_runs", lines.length + notes.length === 0 ? [] : [heading, ...notes, ...lines]),
    dropped: cut === 0 ? [] : [{ name: "recent_runs", reason: `${cut} runs are beyond maxRecentRuns or do not fit` }],
  };
};
