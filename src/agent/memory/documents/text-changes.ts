import { diffLines, diffWordsWithSpace } from "diff";

/** One change of a text: at a place, the number of characters removed and the text inserted. */
export type Splice = { at: number; remove: number; insert: string };

/**
 * How far two texts may lie apart for a comparison by words, which takes the square of that; then by lines, then whole.
 * Never by characters: what has only letters in common has nothing in common.
 */
const maxWordEdits = 400;
const maxLineEdits = 400;

/** Changes of one text that are worth keeping apart: a document takes each for itself, in time that grows with them. */
const maxSplices = 500;

const isLowSurrogate = (text: string, index: number): boolean => {
  const unit = text.charCodeAt(index);
  return unit >= 0xdc00 && unit <= 0xdfff;
};

const commonStart = (one: string, other: string): number => {
  const most = Math.min(one.length, other.length);
  let length = 0;
  while (length < most && one.charCodeAt(length) === other.charCodeAt(length)) length += 1;
  // Never between the halves of a surrogate pair.
  return length > 0 && (isLowSurrogate(one, length) || isLowSurrogate(other, length)) ? length - 1 : length;
};

const commonEnd = (one: string, other: string, start: number): number => {
  const most = Math.min(one.length, other.length) - start;
  let length = 0;
  while (length < most && one.charCodeAt(one.length - 1 - length) === other.charCodeAt(other.length - 1 - length)) {
    length += 1;
  }
  return length > 0 && isLowSurrogate(one, one.length - length) ? length - 1 : length;
};

/** The changes that make `next` of `old`, by place. The same texts give the same changes, and in bounded time. */
export const changesBetween = (old: string, next: string): Splice[] => {
  if (old === next) return [];
  const start = commonStart(old, next);
  const end = commonEnd(old, next, start);
  const from = old.slice(start, old.length - end);
  const to = next.slice(start, next.length - end);
  const parts =
    from === "" || to === ""
      ? undefined
      : (diffWordsWithSpace(from, to, { maxEditLength: maxWordEdits }) ??
        diffLines(from, to, { maxEditLength: maxLineEdits }));
  if (!parts) return [{ at: start, remove: from.length, insert: to }];
  const splices: Splice[] = [];
  let at = start;
  let open: Splice | undefined;
  for (const { value, added, removed } of parts) {
    if (!added && !removed) {
      at += value.length;
      open = undefined;
      continue;
    }
    if (!open) {
      open = { at, remove: 0, insert: "" };
      splices.push(open);
    }
    if (added) open.insert += value;
    else {
      open.remove += value.length;
      at += value.length;
    }
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
