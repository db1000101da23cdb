import type { ModelPrompt } from "../models/language-model.ts";
import { promptText } from "./prompt-text.ts";

const bar = "  |";
const mostLines = 40;
const longestLine = 160;

const cut = (line: string): string => (line.length > longestLine ? `${line.slice(0, longestLine)}…` : line);

/** The lines behind bars, in groups, as headings divide them. */
const groupsOf = (user: string): { heading: string; lines: string[] }[] => {
  const groups: { heading: string; lines: string[] }[] = [];
  for (const line of user.split("\n")) {
    if (line.startsWith(bar)) groups.at(-1)?.lines.push(line.slice(bar.length).trim());
    else groups.push({ heading: line, lines: [] });
  }
  return groups;
};

/**
 * What the rehearsal model answers as a summariser: the summary so far, then of each cycle the agent's own last words,
 * or each message; the newest lines where they are too many. Undefined where the prompt is no summariser's.
 */
export const summarise = (prompt: ModelPrompt): string | undefined => {
  if (!promptText(prompt, "system").startsWith("You keep the memory of an AI agent")) return undefined;
  const lines = groupsOf(promptText(prompt, "user")).flatMap(({ heading, lines: own }) => {
    if (!heading.startsWith("CYCLE ")) return own;
    const said = own.findLast((line) => line.startsWith("assistant: "))?.slice("assistant: ".length);
    return said === undefined ? [] : [said];
  });
  return (
    lines
      .filter((line) => line !== "")
      .map(cut)
      .slice(-mostLines)
      .join("\n") || "Nothing happened."
  );
};
