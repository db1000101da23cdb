import { estimateTokenCount } from "tokenx";

/**
 * The estimate of `tokenx`, exactly, several times faster: one scan of the character codes instead of a split by an
 * expression. `tokenx` itself is asked for words beyond ASCII alone, and those come again and again.
 */
const other = 0;
const space = 1;
const punctuation = 2;
const digit = 3;
const lowercase = 4;
const beyondAscii = 5;

const lineFeed = 10;

/** By UTF-16 code unit. */
const classes = new Uint8Array(0x10000).fill(beyondAscii, 128);
for (let code = 0; code < 128; code += 1) {
  const character = String.fromCharCode(code);
  if (/\s/.test(character)) classes[code] = space;
  else if (/[.,!?;(){}[\]<>:/\\|@#$%^&*+=`~_"-]/.test(character)) classes[code] = punctuation;
  else if (/\d/.test(character)) classes[code] = digit;
  else if (/[a-z]/.test(character)) classes[code] = lowercase;
}

const classAt = (text: string, at: number): number => classes[text.charCodeAt(at)] ?? other;

/** East Asian punctuation, which `tokenx` takes for punctuation before a line's end. */
const widePunctuation =
  /[\u3001-\u3003\u3008-\u3011\u3014-\u301f\u3030\u30fb\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65]/;

const isPunctuation = (code: number): boolean =>
  code > 127 ? widePunctuation.test(String.fromCharCode(code)) : classes[code] === punctuation;

/** Blanks count for nothing; a line's end does, unless punctuation ends the line and nothing is indented after it. */
const spaceTokens = (text: string, from: number, to: number): number => {
  let at = from;
  while (at < to && text.charCodeAt(at) !== lineFeed) at += 1;
  if (at === to) return 0;
  if (to - at > 1) return 1;
  return from > 0 && isPunctuation(text.charCodeAt(from - 1)) ? 0 : 1;
};

const wordTokens = (length: number, kind: number): number => {
  if (length <= 3) return 1;
  if (kind === digit) return Math.ceil(length / 3);
  return kind === lowercase && length <= 8 ? 1 : Math.ceil(length / 7);
};

const known = new Map<string, number>();
const maxKnownWords = 10_000;
const maxKnownLength = 30;

/** Of a word with characters beyond ASCII; undefined if there are blanks among them, since those join their neighbours. */
const foreignTokens = (word: string): number | undefined => {
  const before = known.get(word);
  if (before !== undefined) return before;
  if (/\s/.test(word)) return undefined;
  const tokens = estimateTokenCount(word);
  if (word.length > maxKnownLength) return tokens;
  if (known.size >= maxKnownWords) known.clear();
  known.set(word, tokens);
  return tokens;
};

export const estimateTokens = (text: string): number => {
  const { length } = text;
  let tokens = 0;
  let from = 0;
  while (from < length) {
    let kind = classAt(text, from);
    let to = from + 1;
    if (kind === space || kind === punctuation) {
      while (to < length && classAt(text, to) === kind) to += 1;
      if (kind === space) tokens += spaceTokens(text, from, to);
      else tokens += to - from <= 3 ? 1 : Math.ceil((to - from) / 6);
    } else {
      for (; to < length; to += 1) {
        const next = classAt(text, to);
        if (next === kind) continue;
        if (next === space || next === punctuation) break;
        kind = next === beyondAscii || kind === beyondAscii ? beyondAscii : other;
      }
      const more = kind === beyondAscii ? foreignTokens(text.slice(from, to)) : wordTokens(to - from, kind);
      if (more === undefined) return estimateTokenCount(text);
      tokens += more;
    }
    from = to;
  }
  return tokens;
};
