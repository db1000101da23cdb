import type { MessageEvent, PromptView } from "./prompt-view.ts";
import { escaped } from "./words.ts";

/** How a message addresses the agent: by @name, by name, with everyone, or alone with the sender. */
export type Address = "at" | "name" | "everyone" | "alone" | "none";

/** Finds a name that stands by itself, or behind an @. */
export const namePattern = (name: string, before = ""): RegExp =>
  new RegExp(String.raw`(?<![\p{L}\p{N}_@])${before}${escaped(name)}(?![\p{L}\p{N}_])`, "iu");

const everyonePatterns = [
  /^\s*(?:hi|hello|hey|salaam|salam|good (?:morning|afternoon|evening))[\s,]+(?:you )?(?:all|everyone|everybody|team|folks|there)\b/i,
  /\b(?:anyone|anybody|everyone|everybody)\b[^.!]*\?/i,
  /\b(?:all|each) of you\b/i,
  /^\s*@(?:all|everyone|here|channel)\b/i,
];

/** True where a message addresses another member: by @name anywhere, or by name at its start ("Ahmad, …"). */
const speaksToAnother = (event: MessageEvent, view: PromptView): boolean => {
  const space = view.spaces.find(({ id }) => id === event.spaceId);
  const others = (space?.members ?? []).filter(({ name }) => name !== event.senderName && name !== view.name);
  return others.some(
    ({ name }) =>
      namePattern(name, "@").test(event.text) || new RegExp(`^\\s*${escaped(name)}\\s*[,:]`, "iu").test(event.text),
  );
};

export const addressOf = (event: MessageEvent, view: PromptView): Address => {
  if (view.name !== "" && namePattern(view.name, "@").test(event.text)) return "at";
  const { triggerSource } = event;
  if (triggerSource === "mention") return "at";
  if (speaksToAnother(event, view)) return "none";
  if (view.name !== "" && namePattern(view.name).test(event.text)) return "name";
  // The message woke somebody else, or nobody.
  if (triggerSource === "none") return "none";
  const space = view.spaces.find(({ id }) => id === event.spaceId);
  const others = space?.members.filter(({ name }) => name !== view.name).length ?? 0;
  if (others === 1 || triggerSource === "auto" || triggerSource === "proactive_router") return "alone";
  return everyonePatterns.some((pattern) => pattern.test(event.text)) ? "everyone" : "none";
};

const polite = /^\s*(?:please|pls|could you|can you|would you|all of you|each of you)[\s,:]+(?:please\s+)?/i;

const withoutName = (text: string, name: string): string =>
  text
    .replace(new RegExp(String.raw`@${escaped(name)}(?![\p{L}\p{N}_])[,:]?`, "giu"), " ")
    .replace(
      new RegExp(String.raw`^\s*(?:hi|hello|hey|ok|okay)?[\s,]*${escaped(name)}(?:\s*[,:!]\s*|\s+)(?=\S)`, "iu"),
      "",
    )
    .replace(new RegExp(String.raw`[\s,]+${escaped(name)}\s*([.!?]*)$`, "iu"), "$1");

/** The text without the words that only address: "@Echo", "Echo,", "hi Echo," where more follows. */
export const withoutAddress = (text: string, name: string): string =>
  (name === "" ? text : withoutName(text.trim(), name))
    .replace(/@(?:all|everyone|here|channel)\b[,:]?/gi, " ")
    .replace(polite, "")
    .replace(/[ \t]+/g, " ")
    .trim();
