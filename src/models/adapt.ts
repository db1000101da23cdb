import type { ModelMessage, TextPart, ToolModelMessage } from "ai";
import { oncePerObject } from "../shared/once-per-object.ts";
import type { ModelFamily } from "./model-spec.ts";

/**
 * Fits messages to the demands of each family of providers.
 *
 * Invariants, for every family
 * 1. The first message is the user's, none is empty, no empty text part is left.
 * 2. No two neighbours have the same role.
 * 3. Every tool call keeps its id, its result and its place; a call's input is an object.
 * 4. Adapting is pure, and adapting twice changes nothing. Later messages do not change what was made of a message.
 *    Only neighbours of its own role are appended to it.
 * 5. Messages are never changed in place: each is made fit once.
 */
export type Adapt = (messages: ModelMessage[]) => ModelMessage[];

/** Stands where a conversation would begin with the model's own words. */
const openingText = "(The conversation goes on.)";
const emptyOutputText = "(empty)";

const partsOf = <Part>(content: string | Part[]): (Part | TextPart)[] =>
  typeof content === "string" ? [{ type: "text", text: content }] : content;

const isBlank = (part: { type: string; text?: string }): boolean =>
  (part.type === "text" || part.type === "reasoning") && part.text?.trim() === "";

const isObject = (value: unknown): boolean => typeof value === "object" && value !== null && !Array.isArray(value);

const toolParts = (content: ToolModelMessage["content"]): ToolModelMessage["content"] =>
  content.map((part) => {
    if (part.type !== "tool-result") return part;
    const { output } = part;
    if ((output.type !== "text" && output.type !== "error-text") || output.value.trim() !== "") return part;
    return { ...part, output: { ...output, value: emptyOutputText } };
  });

/** The message with its content as parts, or none if nothing is left of it. */
const cleaned = oncePerObject((message: ModelMessage): ModelMessage | undefined => {
  switch (message.role) {
    case "system":
      return message.content.trim() === "" ? undefined : message;
    case "user": {
      const content = partsOf(message.content).filter((part) => !isBlank(part));
      return content.length > 0 ? { ...message, content } : undefined;
    }
    case "assistant": {
      const content = partsOf(message.content)
        .filter((part) => !isBlank(part))
        .map((part) =>
          part.type === "tool-call" && !isObject(part.input) ? { ...part, input: { raw: part.input } } : part,
        );
      return content.some((part) => part.type !== "reasoning") ? { ...message, content } : undefined;
    }
    case "tool":
      return message.content.length > 0 ? { ...message, content: toolParts(message.content) } : undefined;
  }
});

/** Merges neighbours of one role. */
const merged = (before: ModelMessage, after: ModelMessage): ModelMessage | undefined => {
  if (before.role === "user" && after.role === "user") {
    return { ...before, content: [...partsOf(before.content), ...partsOf(after.content)] };
  }
  if (before.role === "assistant" && after.role === "assistant") {
    return { ...before, content: [...partsOf(before.content), ...partsOf(after.content)] };
  }
  if (before.role !== "tool" || after.role !== "tool") return undefined;
  return { ...before, content: [...before.content, ...after.content] };
};

const alternating: Adapt = (messages) => {
  const result: ModelMessage[] = [];
  for (const message of messages) {
    const clean = cleaned(message);
    if (!clean) continue;
    const last = result.at(-1);
    const both = last && merged(last, clean);
    if (both) result.splice(-1, 1, both);
    else result.push(clean);
  }
  const firstSpoken = result.findIndex((message) => message.role !== "system");
  if (firstSpoken === -1 || result[firstSpoken]?.role === "user") return result;
  return result.toSpliced(firstSpoken, 0, { role: "user", content: [{ type: "text", text: openingText }] });
};

/** Changes each part of the assistant's and the tools' messages. */
const eachPart = (change: <Part extends { type: string }>(part: Part) => Part[]): Adapt => {
  const changed = oncePerObject((message: ModelMessage): ModelMessage => {
    if (message.role === "tool") return { ...message, content: message.content.flatMap((part) => change(part)) };
    if (message.role !== "assistant") return message;
    return { ...message, content: partsOf(message.content).flatMap((part) => change(part)) };
  });
  return (messages) => messages.map(changed);
};

/**
 * OpenAI takes ids of 40 characters at most, Mistral of exactly 9 letters and digits. The end of an id is its hash.
 */
const shortenIds = eachPart((part) => {
  if (!("toolCallId" in part)) return [part];
  const plain = String(part.toolCallId).replace(/[^A-Za-z0-9]/g, "");
  return [{ ...part, toolCallId: plain.slice(-9).padStart(9, "0") }];
});

/** A model's earlier reasoning: most servers refuse the field, and its bytes would be billed at every step. */
const withoutReasoning = eachPart((part) => (part.type === "reasoning" ? [] : [part]));

/** One text where neighbours were merged: some servers take no parts, and others put them on one line. */
const inOneText: Adapt = (messages) =>
  messages.map((message) => {
    if (message.role !== "user" || typeof message.content === "string") return message;
    const texts = message.content.flatMap((part) => (part.type === "text" ? [part.text] : []));
    if (texts.length < 2 || texts.length < message.content.length) return message;
    return { ...message, content: [{ type: "text", text: texts.join("\n") }] };
  });

export const adapters: Record<ModelFamily, Adapt> = {
  rehearsal: alternating,
  "workers-ai": (messages) => alternating(withoutReasoning(messages)),
  "openai-compatible": (messages) => inOneText(shortenIds(alternating(withoutReasoning(messages)))),
};
