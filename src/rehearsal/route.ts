import type { ModelPrompt } from "../models/language-model.ts";
import { routedAgent, routedDescription, routedMessage, routerOpening } from "../space/router/prompt.ts";
import { promptText } from "./parse-prompt.ts";

/** Words that do not tell one agent's work from another's. */
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

/**
 * The rehearsal model's answer as a space's router: it wakes those agents whose name or description has a word in
 * common with the message. Undefined where the prompt is not a router's.
 */
export const route = (prompt: ModelPrompt): string | undefined => {
  if (!promptText(prompt, "system").startsWith(routerOpening)) return undefined;
  const lines = promptText(prompt, "user").split("\n");
  const said = new Set(wordsOf(routedMessage.read(lines.at(-1) ?? "")?.text ?? ""));
  const wake = lines
    .flatMap((line) => routedAgent.read(line) ?? [])
    .filter(({ name, about }) =>
      wordsOf(`${name} ${routedDescription.read(about)?.description ?? ""}`).some((word) => said.has(word)),
    );
  return JSON.stringify({ wake: wake.map(({ id }) => id) });
};
