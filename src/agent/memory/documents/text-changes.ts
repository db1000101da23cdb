import { diffLines, diffWordsWithSpace } from "diff";

/** One change of a text: at a place, the number of characters removed and the text inserted. */
export type Splice = { at: number; remove: number; insert: string };

/**
 * How far two texts may lie apart for a comparison by words, which takes the square of that; then by lines, then whole.
 * Never by characters: what has only letters in common has nothing in common.
 */
const maxWordEdits = 400;
const maxLineEdits = 400;

/** Changes of one text that are worth keeping apart: a document takes each by itself, in time that grows with them. */
const maxSplices = 500;

/** Characters that two texts have in common at their start and at their end. Neither ends within a surrogate pair. */
const inCommon = (one: string, other: string): { start: number; end: number } => {
  const most = Math.min(one.length, other.length);
  let start = 0;
  while (start < most && one.charCodeAt(start) === other.charCodeAt(start)) start += 1;
  if (!one.slice(0, start).isWellFormed()) start -= 1;
  let end = 0;
  while (end < most - start && one.charCodeAt(one.length - 1 - end) === other.charCodeAt(other.length - 1 - end)) {
    end += 1;
  }
  return { start, end: one.slice(one.length - end).isWellFormed() ? end : end - 1 };
};

/** The changes that make `next` of `old`, by place. The same texts give the same changes, and in bounded time. */
export const changesBetween = (old: string, next: string): Splice[] => {
  if (old === next) return [];
  const { start, end } = inCommon(old, next);
  const from = old.slice(start, old.length - end);
  const to = next.slice(start, next.length - end);
  const compared =
    from === "" || to === ""
      ? undefined
      : (diffWordsWithSpace(from, to, { maxEditLength: maxWordEdits }) ??
        diffLines(from, to, { maxEditLength: maxLineEdits }));
  if (!compared) return [{ at: start, remove: from.length, insert: to }];
  const splices: Splice[] = [];
  let at = start;
  for (const { value, added, removed } of compared) {
    if (added || removed) {
      let splice = splices.at(-1);
      if (!splice || splice.at + splice.remove < at) {
        splice = { at, remove: 0, insert: "" };
        splices.push(splice);
      }
      if (added) splice.insert += value;
      else splice.remove += value.length;
    }
    if (!added) at += value.length;
  }
  return splices;
};

export const applySplices = (text: string, splices: Splice[]): string => {
  let result = "";
  let at = 0;
  for (const splice of splices) {
    result += text.slice(at, splice.at) + splice.insert;
    at = splice.at + splice.remove;
  }
  return result + text.slice(at);
};

/** The same changes, neighbours taken together where there are too many to keep apart. */
export const fewerSplices = (text: string, splices: Splice[]): Splice[] => {
  const size = Math.ceil(splices.length / maxSplices);
  if (size <= 1) return splices;
  return Array.from({ length: Math.ceil(splices.length / size) }, (_, group) => {
    const joined = splices.slice(group * size, (group + 1) * size);
    const at = joined[0]?.at ?? 0;
    const last = joined.at(-1);
    const end = last ? last.at + last.remove : at;
    const within = joined.map((splice) => ({ ...splice, at: splice.at - at }));
    return { at, remove: end - at, insert: applySplices(text.slice(at, end), within) };
  });
};

/** The pieces of a text that the splices leave. `place` is where each begins afterwards. */
const piecesLeft = (text: string, splices: Splice[]): { from: number; to: number; place: number }[] => {
  let from = 0;
  let place = 0;
  return [...splices, { at: text.length, remove: 0, insert: "" }].map(({ at, remove, insert }) => {
    const piece = { from, to: at, place };
    place += at - from + insert.length;
    from = at + remove;
    return piece;
  });
};

/**
 * `ours` with the changes that lead from `base` to `theirs`. What was changed otherwise meanwhile stays as it is. Of a
 * place that both changed, ours has the last word. A place of which less than half still stands counts as one.
 */
export const mergeText = (base: string, ours: string, theirs: string): string => {
  if (ours === base) return theirs;
  if (theirs === base || ours === theirs) return ours;
  const pieces = piecesLeft(base, changesBetween(base, ours));
  const splices = changesBetween(base, theirs).flatMap(({ at, remove, insert }): Splice[] => {
    // Text that others inserted inside stays: it splits what is removed.
    const standing = pieces.flatMap(({ from, to, place }) => {
      const [start, end] = [Math.max(from, at), Math.min(to, at + remove)];
      return start < end ? [{ at: place + start - from, remove: end - start, insert: "" }] : [];
    });
    if (standing.reduce((left, piece) => left + piece.remove, 0) * 2 < remove) return [];
    const next = pieces.find(({ to }) => to > at) ?? pieces.at(-1);
    return [{ at: next ? next.place + Math.max(0, at - next.from) : 0, remove: 0, insert }, ...standing];
  });
  return applySplices(ours, splices);
};
