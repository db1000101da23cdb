import type { AssistantModelMessage, ModelMessage, ToolModelMessage, UserModelMessage } from "ai";
import type { ModelFamily } from "./model-spec.ts";

/**
 * Fits messages to the demands of each family of providers.
 *
 * Invariants, for every family
 * 1. The first message is the user's, none is empty, no empty text part is left.
 * 2. No two neighbours have the same role.
 * 3. Every tool call keeps its id, its result and its place; a call's input is an object.
 * 4. Adapting is pure, adapting twice changes nothing, and what was made of a message never depends on later
 *    ones but for neighbours of its own role, which are appended to it.
 */
export type Adapt = (messages: ModelMessage[]) => ModelMessage[];

type Parts<Message extends { content: unknown }> = Exclude<Message["content"], string>;

/** Stands where a conversation would begin with the model's own words. */
const openingText = "(The conversation goes on.)";
const emptyOutputText = "(empty)";

const userParts = (content: UserModelMessage["content"]): Parts<UserModelMessage> => {
  const parts: Parts<UserModelMessage> = typeof content === "string" ? [{ type: "text", text: content }] : content;
  return parts.filter((part) => part.type !== "text" || part.text.trim() !== "");
};

const isObject = (value: unknown): boolean => typeof value === "object" && value !== null && !Array.isArray(value);

const assistantParts = (content: AssistantModelMessage["content"]): Parts<AssistantModelMessage> => {
  const parts: Parts<AssistantModelMessage> = typeof content === "string" ? [{ type: "text", text: content }] : content;
  return parts
    .filter((part) => (part.type !== "text" && part.type !== "reasoning") || part.text.trim() !== "")
    .map((part) =>
      part.type === "tool-call" && !isObject(part.input) ? { ...part, input: { raw: part.input } } : part,
    );
};

const toolParts = (content: ToolModelMessage["content"]): ToolModelMessage["content"] =>
  content.map((part) => {
    if (part.type !== "tool-result") return part;
    const { output } = part;
    if ((output.type !== "text" && output.type !== "error-text") || output.value.trim() !== "") return part;
    return { ...part, output: { ...output, value: emptyOutputText } };
  });

/** The message with its content as parts, or none if nothing is left of it. */
const cleaned = (message: ModelMessage): ModelMessage | undefined => {
  switch (message.role) {
    case "system":
      return message.content.trim() === "" ? undefined : message;
    case "user": {
      const content = userParts(message.content);
      return content.length > 0 ? { ...message, content } : undefined;
    }
    case "assistant": {
      const content = assistantParts(message.content);
      const says = content.some((part) => part.type !== "reasoning");
      return says ? { ...message, content } : undefined;
    }
    case "tool":
      return message.content.length > 0 ? { ...message, content: toolParts(message.content) } : undefined;
  }
};

/** Merges neighbours of one role. */
const merged = (before: ModelMessage, after: ModelMessage): ModelMessage | undefined => {
  if (before.role === "user" && after.role === "user") {
    return { ...before, content: [...userParts(before.content), ...userParts(after.content)] };
  }
  if (before.role === "assistant" && after.role === "assistant") {
    return { ...before, content: [...assistantParts(before.content), ...assistantParts(after.content)] };
  }
  if (before.role === "tool" && after.role === "tool") {
    return { ...before, content: [...before.content, ...after.content] };
  }
  return undefined;
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

/** OpenAI takes ids of 40 characters at most, Mistral of exactly 9 letters and digits. The end of an id is its hash. */
const shortCallId = (id: string): string => {
  const plain = id.replace(/[^A-Za-z0-9]/g, "");
  return plain.slice(-9).padStart(9, "0");
};

const shortenIds: Adapt = (messages) =>
  messages.map((message) => {
    if (message.role === "assistant" && typeof message.content !== "string") {
      const content = message.content.map((part) =>
        part.type === "tool-call" || part.type === "tool-result"
          ? { ...part, toolCallId: shortCallId(part.toolCallId) }
          : part,
      );
      return { ...message, content };
    }
    if (message.role !== "tool") return message;
    const content = message.content.map((part) =>
      part.type === "tool-result" ? { ...part, toolCallId: shortCallId(part.toolCallId) } : part,
    );
    return { ...message, content };
  });

/** A model's earlier reasoning: most servers refuse the field, and its bytes would be billed at every step. */
const withoutReasoning: Adapt = (messages) =>
  messages.map((message) =>
    message.role === "assistant" && typeof message.content !== "string"
      ? { ...message, content: message.content.filter((part) => part.type !== "reasoning") }
      : message,
  );

export const adapters: Record<ModelFamily, Adapt> = {
  rehearsal: alternating,
  "workers-ai": (messages) => alternating(withoutReasoning(messages)),
  "openai-compatible": (messages) => shortenIds(alternating(withoutReasoning(messages))),
};
