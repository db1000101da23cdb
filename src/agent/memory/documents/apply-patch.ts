import { parsePatch } from "diff";
import { refusedEdit } from "./values.ts";

type Hunk = { oldStart: number; lines: string[] };

const parsed = (patch: string): Hunk[] => {
  let files: ReturnType<typeof parsePatch>;
  try {
    files = parsePatch(patch);
  } catch (error) {
    const reason = error instanceof Error ? error.message.trim() : String(error);
    throw refusedEdit(`The patch is no unified diff: ${reason}`);
  }
  const [file, ...others] = files.filter(({ hunks }) => hunks.length > 0);
  if (!file) throw refusedEdit("The patch holds no hunk: a hunk begins with @@ -1,3 +1,3 @@");
  if (others.length > 0) throw refusedEdit("The patch is of more than one file: a block is one");
  return file.hunks;
};

const withSign = ({ lines }: Hunk, signs: string): string[] =>
  lines.filter((line) => signs.includes(line[0] ?? " ")).map((line) => line.slice(1));

/** Whether the hunk says that no line break ends the text, after a line with one of these signs. */
const isUnended = ({ lines }: Hunk, signs: string): boolean =>
  lines.some((line, index) => line.startsWith("\\") && signs.includes(lines[index - 1]?.[0] ?? " "));

/** Finds hunks one after the other, in time that grows with the text and not with their number. */
const placing = (lines: string[]) => {
  const text = `\n${lines.join("\n")}\n`;
  /** Where in `text` the break before each line stands. */
  const breaks: number[] = [];
  let end = 0;
  for (const line of lines) {
    breaks.push(end);
    end += 1 + line.length;
  }
  const lineAt = new Map(breaks.map((at, line) => [at, line]));
  /** The line of `wanted`, no earlier than `from`: the place that its hunk names, or the first that fits. */
  return (wanted: string[], expected: number, from: number): number => {
    const fits = wanted.every((each, index) => lines[expected + index] === each);
    if (expected >= from && expected + wanted.length <= lines.length && fits) return expected;
    if (wanted.length === 0) return -1;
    return lineAt.get(text.indexOf(`\n${wanted.join("\n")}\n`, breaks[from] ?? text.length)) ?? -1;
  };
};

/** A text with a unified diff applied, and of how many hunks that was. All of it or, where a hunk does not fit, none. */
export const applyPatch = (text: string, patch: string): { text: string; hunks: number } => {
  const hunks = parsed(patch);
  // A text that ends with a line break has an empty last line here.
  const lines = text.split("\n");
  const placeOf = placing(lines);
  const result: string[] = [];
  let at = 0;
  for (const [index, hunk] of hunks.entries()) {
    const before = withSign(hunk, " -");
    // A hunk that removes nothing also stands before this line.
    const place = placeOf(before, hunk.oldStart - 1, at);
    if (place < 0) {
      throw refusedEdit(`The patch does not apply: hunk ${index + 1} of ${hunks.length} does not fit the text`);
    }
    for (const line of lines.slice(at, place)) result.push(line);
    for (const line of withSign(hunk, " +")) result.push(line);
    at = place + before.length;
  }
  const rest = lines.slice(at);
  const last = hunks.at(-1);
  if (last && isUnended(last, " +")) {
    if (rest.length === 1 && rest[0] === "") rest.pop();
  } else if (last && isUnended(last, "-") && rest.length === 0) rest.push("");
  return { text: [...result, ...rest].join("\n"), hunks: hunks.length };
};
