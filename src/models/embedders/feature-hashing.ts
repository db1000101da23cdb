import type { Embedder } from "./embedder.ts";

/**
 * The embedded default: feature hashing of words and of the parts of words. The same text is always the same vector.
 * It compares letters, not meaning: it finds inflected, misspelt and joined words.
 */
const dimensions = 256;
const fewestPart = 3;
const longestPart = 5;
/** The weight of all parts of a word, relative to the word itself. */
const partsWeight = 1.6;
const maxCharacters = 8000;

const seed = 0x811c9dc5;
const prime = 0x01000193;

/** FNV-1a over UTF-16, mixed so that its low bits are as good as its high ones. */
const hashOf = (text: string): number => {
  let hash = seed;
  for (let index = 0; index < text.length; index += 1) hash = Math.imul(hash ^ text.charCodeAt(index), prime);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  return (hash ^ (hash >>> 13)) >>> 0;
};

const add = (vector: Float32Array, feature: string, weight: number): void => {
  const hash = hashOf(feature);
  const place = hash % dimensions;
  vector[place] = (vector[place] ?? 0) + (hash & 0x80000000 ? -weight : weight);
};

/** Function words weigh little: every text has them. */
const light = new Set(
  "a an and are as at be but by for from i in is it my of on or so that the this to was we with you".split(" "),
);
const lightWeight = 0.15;

const partsOf = (word: string): string[] => {
  const framed = `^${word}$`;
  const parts: string[] = [];
  for (let length = fewestPart; length <= longestPart; length += 1) {
    for (let at = 0; at + length <= framed.length; at += 1) parts.push(framed.slice(at, at + length));
  }
  return parts;
};

const plain = (text: string): string =>
  text
    .slice(0, maxCharacters)
    .normalize("NFKD")
    .replace(/\p{M}+/gu, "")
    .toLowerCase();

export const hashedFeatures = (text: string): Float32Array => {
  const vector = new Float32Array(dimensions);
  const counts = new Map<string, number>();
  for (const [word] of plain(text).matchAll(/[\p{L}\p{N}]+/gu)) counts.set(word, (counts.get(word) ?? 0) + 1);
  for (const [word, count] of counts) {
    const weight = (1 + Math.log(count)) * (light.has(word) ? lightWeight : 1);
    add(vector, word, weight);
    const parts = partsOf(word);
    for (const part of parts) add(vector, part, (weight * partsWeight) / Math.sqrt(parts.length));
  }
  return vector;
};

export const featureHashing: Embedder = {
  id: `feature-hashing/${dimensions}`,
  isEmbedded: true,
  maxTexts: 500,
  maxCharacters,
  leastLikeness: 0.25,
  sureLikeness: 0.5,
  embed: (texts) => Promise.resolve({ vectors: texts.map(hashedFeatures), tokens: 0 }),
};
