import { parsePatch } from "diff";
import { refusedEdit } from "./refused-edit.ts";

type Hunk = { oldStart: number; lines: string[] };

const parsed = (patch: string): Hunk[] => {
  let files: ReturnType<typeof parsePatch>;
  try {
    files = parsePatch(patch);
  } catch (error) {
    throw refusedEdit(`The patch is no unified diff: ${error instanceof Error ? error.message : String(error)}`);
  }
  const [file, ...others] = files.filter(({ hunks }) => hunks.length > 0);
  if (!file) throw refusedEdit("The patch holds no hunk: a hunk begins with @@ -1,3 +1,3 @@");
  if (others.length > 0) throw refusedEdit("The patch is of more than one file: a block is one");
  return file.hunks;
};

const withSign = ({ lines }: Hunk, signs: string): string[] =>
  lines.filter((line) => signs.includes(line[0] ?? " ")).map((line) => line.slice(1));

/** Where `wanted` stands in `lines`, no earlier than `from`: at the place that its hunk names, or the first that fits. */
const placeOf = (lines: string[], wanted: string[], expected: number, from: number): number => {
  const fits = (place: number): boolean => wanted.every((line, index) => lines[place + index] === line);
  if (expected >= from && expected + wanted.length <= lines.length && fits(expected)) return expected;
  if (wanted.length === 0) return -1;
  // A search in one text keeps to linear time, whatever the lines repeat.
  const text = `\n${lines.slice(from).join("\n")}\n`;
  const found = text.indexOf(`\n${wanted.join("\n")}\n`);
  return found < 0 ? -1 : from + (text.slice(0, found).split("\n").length - 1);
};

/** A text with a unified diff applied, and of how many hunks that was. All of it or, where a hunk does not fit, none. */
export const applyPatch = (text: string, patch: string): { text: string; hunks: number } => {
  const hunks = parsed(patch);
  const lines = text.split("\n");
  const result: string[] = [];
  let at = 0;
  for (const [index, hunk] of hunks.entries()) {
    const before = withSign(hunk, " -");
    // A hunk that takes nothing names the line that it comes after.
    const expected = before.length === 0 ? hunk.oldStart : hunk.oldStart - 1;
    const place = placeOf(lines, before, expected, at);
    if (place < 0) {
      throw refusedEdit(`The patch does not apply: hunk ${index + 1} of ${hunks.length} does not fit the text`);
    }
    result.push(...lines.slice(at, place), ...withSign(hunk, " +"));
    at = place + before.length;
  }
  return { text: [...result, ...lines.slice(at)].join("\n"), hunks: hunks.length };
};
