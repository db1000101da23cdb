import { countTo, longText } from "../long-text.ts";
import { answer, type Rule } from "../turn.ts";

const unquoted = (text: string): string => /^(["'“‘])(.*)(["'”’])$/s.exec(text.trim())?.[2] ?? text.trim();

export const say: Rule = {
  forAgents: true,
  match: (turn) => {
    const match = /^\s*(?:say|repeat(?: after me| back)?|echo)\b\s*[:,]?\s+(.+)$/is.exec(turn.request);
    return match?.[1] === undefined ? undefined : answer(turn, unquoted(match[1]), "repeated it");
  },
};

const mostCounted = 1000;

export const count: Rule = {
  forAgents: true,
  match: (turn) => {
    const match = /\bcount (?:up )?to (\d{1,6})\b/i.exec(turn.request);
    if (!match) return undefined;
    const last = Number(match[1]);
    return last < 1 || last > mostCounted
      ? answer(turn, `I count from 1 to at most ${mostCounted}.`, "could not count that far")
      : answer(turn, countTo(last), `counted to ${last}`);
  },
};

const storyWords = 180;
const mostWords = 2000;

export const write: Rule = {
  forAgents: true,
  match: (turn) => {
    const words = /\bwrite (?:me |us )?(?:about )?(\d{1,6}) words\b/i.exec(turn.request);
    const story = /\b(?:tell|write)(?: me| us)? an? (?:\w+ )?(?:story|tale|essay|poem)\b/i.test(turn.request);
    if (!words && !story) return undefined;
    const wanted = Math.min(Math.max(words ? Number(words[1]) : storyWords, 1), mostWords);
    return answer(turn, longText(wanted, turn.tone.name), `wrote ${wanted} words`);
  },
};
