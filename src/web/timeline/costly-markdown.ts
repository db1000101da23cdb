const maxNestingMarks = 1000;
const maxDepth = 60;
const maxContainers = 1000;
const maxTableCells = 20_000;
const maxUnderlines = 500;
const betweenParts = /\n\s*\n|\n(?= {0,3}[-*+] +\S)/;
const openings = /^(?:[ \t]*(?:>|(?:[-*+]|\d{1,9}[.)])[ \t]))+/gm;
const underTableHead = /^[ \t>]*[|:-][|: \t-]*$/gm;
const underline = /^[ \t>]*(?:=+|-+)[ \t]*$/gm;

/** How many quotes and lists the beginning of a line is in. A list that is in no other is cheap. */
const containersOf = (opening: string): number =>
  (opening.match(/[>*+.)-]/g)?.length ?? 0) - Number(/^ ?[^\s>]/.test(opening));

/** Each row of a table gets as many cells as its head has, however short it is. */
const cellsIn = (part: string): number =>
  Math.max(0, ...(part.match(underTableHead) ?? []).map((line) => line.split("|").length - 1)) *
  part.split("\n").length;

const sumOf = (counts: number[]): number => counts.reduce((sum, each) => sum + each, 0);

/**
 * Whether to read the text as Markdown would hold the page up for seconds, or take more than its stack: it nests deeply, or
 * has very many cells, underlined headings, or quotes and lists in others. A model in a loop writes such texts, and anybody can.
 */
export const isCostly = (text: string): boolean => {
  const parts = text.split(betweenParts);
  const containers = (text.match(openings) ?? []).map(containersOf);
  return (
    containers.some((depth) => depth + 1 >= maxDepth) ||
    sumOf(containers) > maxContainers ||
    parts.some((part) => (part.match(/[*_[!~]/g)?.length ?? 0) > maxNestingMarks) ||
    sumOf(parts.map(cellsIn)) > maxTableCells ||
    (text.match(underline)?.length ?? 0) > maxUnderlines
  );
};
