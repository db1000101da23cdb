import type { ModelPrompt } from "../models/language-model.ts";
import { routedAgent, routedDescription, routedMessage, routerOpening } from "../space/router/prompt.ts";
import { namePattern } from "./addressed.ts";
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

type Agent = { id: string; name: string; words: string[] };
type Said = { name: string; type: string; text: string };

/** The agent that asked the sender by @name and has had no word of the sender since. */
const askerOf = (sender: string, before: Said[], agents: Agent[]): Agent | undefined => {
  const asks = ({ type, text }: Said): boolean => type === "agent" && namePattern(sender, "@").test(text);
  const last = before.findLast((said) => said.name === sender || asks(said));
  return last && asks(last) ? agents.find(({ name }) => name === last.name) : undefined;
};

/** The agent that has most words in common with the text, and the first of those. */
const closestTo = (text: string, agents: Agent[]): Agent | undefined => {
  const said = new Set(wordsOf(text));
  const inCommon = ({ words }: Agent): number => new Set(words).intersection(said).size;
  const [closest] = agents.toSorted((one, other) => inCommon(other) - inCommon(one));
  return closest && inCommon(closest) > 0 ? closest : undefined;
};

/**
 * The rehearsal model's answer as a space's router. It wakes the agent that the message answers, those that it names, or
 * the one whose description has most words in common with it. Where the space's instructions say "always wake one", the
 * first agent stands in for those. Undefined where the prompt is not a router's.
 */
export const route = (prompt: ModelPrompt): string | undefined => {
  const system = promptText(prompt, "system");
  if (!system.startsWith(routerOpening)) return undefined;
  const lines = promptText(prompt, "user").split("\n");
  const agents = lines.flatMap((line): Agent[] => {
    const agent = routedAgent.read(line);
    if (!agent) return [];
    const description = routedDescription.read(agent.about)?.description ?? "";
    return [{ id: agent.id, name: agent.name, words: wordsOf(`${agent.name} ${description}`) }];
  });
  const messages = lines.flatMap((line) => routedMessage.read(line) ?? []);
  const { name: sender, text } = messages.at(-1) ?? { name: "", text: "" };
  const asker = askerOf(sender, messages.slice(0, -1), agents);
  const named = asker ? [asker] : agents.filter(({ name }) => namePattern(name).test(text));
  const standIn = /\balways wake one\b/i.test(system) ? agents[0] : undefined;
  const fitting = closestTo(text, agents) ?? standIn;
  const wake = named.length > 0 || !fitting ? named : [fitting];
  return JSON.stringify({ wake: wake.map(({ id }) => id) });
};
