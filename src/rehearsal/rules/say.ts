import type { Tone } from "../tone.ts";
import { rule } from "../turn.ts";

const unquoted = (text: string): string => /^(["'“‘])(.*)(["'”’])$/s.exec(text.trim())?.[2] ?? text.trim();

export const say = rule(/^\s*(?:say|repeat(?: after me| back)?|echo)\b\s*[:,]?\s+(.+)$/is, (_, words = "") => [
  unquoted(words),
  "repeated it",
]);

const mostCounted = 1000;

export const count = rule(/\bcount (?:up )?to (\d{1,6})\b/i, (_, number) => {
  const last = Number(number);
  if (last < 1 || last > mostCounted) return [`I count from 1 to at most ${mostCounted}.`, "could not count that far"];
  return [Array.from({ length: last }, (_, index) => index + 1).join(", "), `counted to ${last}`];
});

const openings: Record<Tone["name"], string> = {
  plain: "Once there was a house with many rooms, and in every room somebody was talking.",
  brief: "A house. Many rooms. Somebody talked in each.",
  cheerful: "What a happy house it was, with many sunny rooms, and in every room somebody was laughing!",
  formal: "It is recorded that there stood a house of many rooms, in each of which a conversation was held.",
  pirate: "Arr, there once was a ship o' many cabins, and in every cabin some scurvy dog was talkin'.",
};

const sentences = [
  "A message came in at the front door and asked the way.",
  "Nobody knew it, so it was written down before anything else happened.",
  "The first room read it twice and said nothing, for nothing was asked of it.",
  "The second room answered slowly, one word after the other, and all could watch the words appear.",
  "Then the lamp went out in the middle of a sentence.",
  "When it was lit again the sentence went on from where it had been, and no word stood there twice.",
  "A guest who had been away asked what had been said, and was told all of it, in order.",
  "Someone carried a greeting from the kitchen to the garden and came back to say that it was done.",
  "The clock struck, and a promise made long ago was kept on time.",
  "Two voices began to thank each other, noticed it, and stopped.",
  "What was worth keeping was put into a drawer with a label on it.",
  "Everybody agreed that a house is its conversations.",
];

/** Exactly `wordCount` words, always the same ones; a paragraph every six sentences. For watching a long stream. */
const longText = (wordCount: number, tone: Tone["name"]): string => {
  const words: string[] = [];
  for (let index = 0; words.length < wordCount; index += 1) {
    const sentence = index === 0 ? openings[tone] : (sentences[(index - 1) % sentences.length] ?? "");
    const [first = "", ...rest] = sentence.split(" ");
    words.push(index > 0 && index % 6 === 0 ? `\n\n${first}` : first, ...rest);
  }
  const text = words.slice(0, wordCount).join(" ").replaceAll(" \n\n", "\n\n");
  return /[.!?]$/.test(text) ? text : `${text.replace(/[,;:]$/, "")}.`;
};

const storyWords = 180;
const mostWords = 2000;

export const write = rule(
  /^(?:.*?\bwrite (?:me |us )?(?:about )?(\d{1,6}) words\b|.*?\b(?:tell|write)(?: me| us)? an? (?:\w+ )?(?:story|tale|essay|poem)\b)/is,
  (turn, words) => {
    const wanted = Math.min(Math.max(words ? Number(words) : storyWords, 1), mostWords);
    return [longText(wanted, turn.tone.name), `wrote ${wanted} words`];
  },
);
