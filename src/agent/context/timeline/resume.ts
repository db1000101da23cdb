import { callLine } from "../call-line.ts";
import { earlierCall, headings, listItem, resumeLine } from "../grammar.ts";
import { keepFitting, linesTokens, lineTokens } from "../keep-fitting.ts";
import type { Resume } from "./snapshot.ts";

/** What a run did before its wait, the newest that fits `room`, and why it goes on. */
export const resumeLines = (resume: Resume, room: number): { lines: string[]; left: number } => {
  const calls = resume.soFar.map(
    (action) => `  ${listItem.write({ item: earlierCall.write({ call: callLine(action) }) })}`,
  );
  const heading = headings.thisRun;
  const why = resumeLine.write({
    replied: resume.replies.map(({ name }) => name),
    timedOut: resume.timedOut,
    gone: resume.gone ?? [],
  });
  const roomForCalls = room - linesTokens([heading, why]);
  const { kept, left } = keepFitting(calls, roomForCalls, lineTokens, (_, index) => -index);
  const note = left.length === 0 ? [] : [`  (${left.length} earlier calls are not shown)`];
  return { lines: [heading, ...note, ...(calls.length === 0 ? ["  (no calls)"] : kept), why], left: left.length };
};
