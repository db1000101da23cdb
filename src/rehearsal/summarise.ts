import { cycleHeading, summariserOpening, toldMessage } from "../agent/context/grammar.ts";
import type { ModelPrompt } from "../models/language-model.ts";
import { unquoteLine } from "../shared/quote.ts";
import { promptText } from "./parse-prompt.ts";

const mostLines = 40;
const longestLine = 160;

const cut = (line: string): string => (line.length > longestLine ? `${line.slice(0, longestLine)}…` : line);

/** The quoted lines in groups, each with the line before it. */
const groupsOf = (user: string): { heading: string; lines: string[] }[] => {
  const groups: { heading: string; lines: string[] }[] = [];
  for (const line of user.split("\n")) {
    const words = unquoteLine(line);
    if (words === undefined) groups.push({ heading: line, lines: [] });
    else groups.at(-1)?.lines.push(words.trim());
  }
  return groups;
};

/**
 * The rehearsal model's answer as a summariser: the summary so far, then the agent's own last words of each cycle, or
 * each message. The newest lines stay where they are too many. Undefined where the prompt is not a summariser's.
 */
export const summarise = (prompt: ModelPrompt): string | undefined => {
  if (!promptText(prompt, "system").startsWith(summariserOpening)) return undefined;
  const lines = groupsOf(promptText(prompt, "user")).flatMap(({ heading, lines: own }) => {
    if (!cycleHeading.read(heading)) return own;
    const said = own.flatMap((line) => toldMessage.read(line) ?? []).findLast(({ role }) => role === "assistant");
    return said ? [said.text] : [];
  });
  const newest = lines.filter((line) => line !== "").slice(-mostLines);
  return newest.map(cut).join("\n") || "Nothing happened.";
};
