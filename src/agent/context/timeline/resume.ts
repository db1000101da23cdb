import { callLine } from "../call-line.ts";
import { keepFitting, linesTokens, lineTokens } from "../keep-fitting.ts";
import { quote } from "../quote.ts";
import type { Resume } from "./snapshot.ts";

const quoted = (names: string[]): string => names.map(quote).join(", ");

/** What a run did before its wait, the newest that fits `room`, and why it goes on. */
export const resumeLines = (resume: Resume, room: number): { lines: string[]; left: number } => {
  const calls = resume.soFar.map((action) => `  - ${callLine(action)}`);
  const replied = resume.replies.length === 0 ? [] : [`${quoted(resume.replies.map(({ name }) => name))} replied.`];
  const late = resume.timedOut.length === 0 ? [] : [`${quoted(resume.timedOut)} did not reply in time.`];
  const gone = !resume.gone?.length ? [] : [`${quoted(resume.gone)} left the space without a reply.`];
  const heading = "THIS RUN SO FAR:";
  const why = `← RESUME: ${[...replied, ...late, ...gone, "Continue from here."].join(" ")}`;
  const roomForCalls = room - linesTokens([heading, why]);
  const { kept, left } = keepFitting(calls, roomForCalls, lineTokens, (_, index) => -index);
  const note = left.length === 0 ? [] : [`  (${left.length} earlier calls are not shown)`];
  return { lines: [heading, ...note, ...(calls.length === 0 ? ["  (no calls)"] : kept), why], left: left.length };
};
