import type { ModelPrompt } from "../models/language-model.ts";
import { parseString } from "./parse-lines.ts";
import { promptText } from "./prompt-text.ts";

type RoutedAgent = { id: string; name: string; description: string };

/** Words that say nothing of what an agent is for. */
const fillers = new Set(
  "about also answers anything does from have into needs some than that them they this what when where which will with your".split(
    " ",
  ),
);
const shortestWord = 4;

/** The words of a text that mean something, in lower case, a plural as its singular. */
const wordsOf = (text: string): string[] =>
  (
    text
      .normalize("NFC")
      .toLowerCase()
      .match(/[\p{L}\p{N}\p{M}]+/gu) ?? []
  )
    .filter((word) => word.length >= shortestWord && !fillers.has(word))
    .map((word) => word.replace(/(?<=\p{L}{3})s$/u, ""));

const agentIn = (line: string): RoutedAgent | undefined => {
  const [, name, id, description] = /^\s+- ("(?:[^"\\]|\\.)*") \(id: (\w+)\)(?:: (".*"))?$/.exec(line) ?? [];
  if (!name || !id) return undefined;
  return { id, name: parseString(name) ?? "", description: parseString(description ?? "") ?? "" };
};

/**
 * What the rehearsal model answers as a space's router: it wakes those agents whose name or description has a word in
 * common with the message. Undefined where the prompt is no router's.
 */
export const route = (prompt: ModelPrompt): string | undefined => {
  if (!promptText(prompt, "system").startsWith("You are the router of a space")) return undefined;
  const lines = promptText(prompt, "user").split("\n");
  const [, quoted = '""'] =
    /^ {2}\[[^\]]*\] "(?:[^"\\]|\\.)*" \(\w+\): (".*") ← DECIDE$/.exec(lines.at(-1) ?? "") ?? [];
  const said = new Set(wordsOf(parseString(quoted) ?? ""));
  const agents = lines
    .slice(
      0,
      lines.findIndex((line) => line.startsWith("MESSAGES")),
    )
    .flatMap((line) => agentIn(line) ?? []);
  const wake = agents.filter(({ name, description }) =>
    wordsOf(`${name} ${description}`).some((word) => said.has(word)),
  );
  return JSON.stringify({ wake: wake.map(({ id }) => id) });
};
