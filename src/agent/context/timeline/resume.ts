import { quote } from "../quote.ts";
import { callLine } from "./action.ts";
import { keepFitting, lineTokens } from "./keep-fitting.ts";
import type { Resume } from "./snapshot.ts";

const quoted = (names: string[]): string => names.map(quote).join(", ");

/** What a run did before its wait, the newest that fits `room`, and why it goes on. */
export const resumeLines = (resume: Resume, room: number): { lines: string[]; left: number } => {
  const calls = resume.soFar.map((action) => `  - ${callLine(action)}`);
  const { kept, left } = keepFitting(calls, room, lineTokens, (_, index) => -index);
  const replied = resume.replies.length === 0 ? [] : [`${quoted(resume.replies.map(({ name }) => name))} replied.`];
  const late = resume.timedOut.length === 0 ? [] : [`${quoted(resume.timedOut)} did not reply in time.`];
  return {
    lines: [
      "THIS RUN SO FAR:",
      ...(left.length === 0 ? [] : [`  (${left.length} earlier calls are not shown)`]),
      ...(calls.length === 0 ? ["  (no calls)"] : kept),
      `← RESUME: ${[...replied, ...late, "Continue from here."].join(" ")}`,
    ],
    left: left.length,
  };
};
