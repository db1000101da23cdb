import { z } from "zod";
import { maxMcpResultCharacters } from "../../bounds.ts";

/**
 * What a server answered a call with, as the value that the model reads: text as text, structured content as it is,
 * and of anything else what it is and how large. Bounded. Pure.
 */
const Block = z.discriminatedUnion("type", [
  z.looseObject({ type: z.literal("text"), text: z.string() }),
  z.looseObject({ type: z.literal("image"), data: z.string(), mimeType: z.string() }),
  z.looseObject({ type: z.literal("audio"), data: z.string(), mimeType: z.string() }),
  z.looseObject({
    type: z.literal("resource_link"),
    uri: z.string(),
    name: z.string().optional(),
    mimeType: z.string().optional(),
  }),
  z.looseObject({
    type: z.literal("resource"),
    resource: z.looseObject({
      uri: z.string(),
      mimeType: z.string().optional(),
      text: z.string().optional(),
      blob: z.string().optional(),
    }),
  }),
]);

const CallResult = z.looseObject({
  content: z.array(z.unknown()).default([]),
  structuredContent: z.unknown().optional(),
  isError: z.boolean().default(false),
});

const maxBlocks = 50;

const base64Bytes = (data: string): number => Math.floor((data.length * 3) / 4);

const described = (raw: unknown): unknown => {
  const parsed = Block.safeParse(raw);
  if (!parsed.success) return { type: "unknown", note: "content of a kind that is not known here; it is left out" };
  const block = parsed.data;
  switch (block.type) {
    case "text":
      return block.text;
    case "image":
    case "audio":
      return { type: block.type, mimeType: block.mimeType, bytes: base64Bytes(block.data), note: "not shown" };
    case "resource_link":
      return { type: "resource_link", uri: block.uri, name: block.name, mimeType: block.mimeType };
    case "resource": {
      const { uri, mimeType, text, blob } = block.resource;
      if (text !== undefined) return { type: "resource", uri, mimeType, text };
      return { type: "resource", uri, mimeType, bytes: base64Bytes(blob ?? ""), note: "not shown" };
    }
  }
};

/** `{value}`, or `{error}` where the server says that the call failed, or `{nonsense}` where it answers no result. */
export const resultValue = (raw: unknown): { value: unknown } | { error: string } | { nonsense: string } => {
  const parsed = CallResult.safeParse(raw);
  if (!parsed.success) return { nonsense: "it answered the call with what is no result" };
  const { content, structuredContent, isError } = parsed.data;
  const blocks = content.slice(0, maxBlocks).map(described);
  if (content.length > maxBlocks) blocks.push(`[${content.length - maxBlocks} more parts of the answer are left out]`);
  // A structured answer repeats itself as text, for those who read no other.
  const whole = structuredContent ?? (blocks.length === 1 ? blocks[0] : blocks);
  if (isError) return { error: cut(typeof whole === "string" ? whole : JSON.stringify(whole)) };
  return { value: bounded(whole) };
};

const cut = (text: string): string => {
  const sound = text.toWellFormed();
  if (sound.length <= maxMcpResultCharacters) return sound;
  const left = sound.length - maxMcpResultCharacters;
  return `${sound.slice(0, maxMcpResultCharacters)} [cut: ${left} more characters (maxMcpResultCharacters)]`;
};

/** JSON that is too long is shown as the beginning of its text. */
const bounded = (value: unknown): unknown => {
  if (typeof value === "string") return cut(value);
  const json = JSON.stringify(value) ?? "null";
  if (json.length <= maxMcpResultCharacters && json.isWellFormed() && !/\\ud[89a-f]/i.test(json)) return value;
  return cut(json);
};
