import * as z from "zod";
import { maxMcpResultCharacters } from "../../bounds.ts";
import type { Redactor } from "../configured/redact.ts";
import { brought } from "../outcome.ts";

/**
 * A server's answer to a call, as the value that the model reads: text as text, structured content as it is. Anything
 * else becomes its kind and size. Bounded. Pure.
 */
const base64Bytes = (data: string): number => Math.floor((data.length * 3) / 4);
const about = { uri: z.string(), mimeType: z.string().optional() };

const Block = z.union([
  z.object({ type: z.literal("text"), text: z.string() }).transform(({ text }) => text),
  z
    .object({ type: z.enum(["image", "audio"]), data: z.string(), mimeType: z.string() })
    .transform(({ data, ...block }) => ({ ...block, bytes: base64Bytes(data), note: "not shown" })),
  z.object({ type: z.literal("resource_link"), name: z.string().optional(), ...about }),
  z
    .object({
      type: z.literal("resource"),
      resource: z.object({ ...about, text: z.string().optional(), blob: z.string().default("") }),
    })
    .transform(({ type, resource: { blob, text, ...resource } }) =>
      text === undefined
        ? { type, ...resource, bytes: base64Bytes(blob), note: "not shown" }
        : { type, ...resource, text },
    ),
  z.unknown().transform(() => ({
    type: "unknown",
    note: "content of a kind that is not known here; it is left out",
  })),
]);

const CallResult = z.looseObject({
  content: z.array(z.unknown()).default([]),
  structuredContent: z.unknown().optional(),
  isError: z.boolean().default(false),
});

const maxBlocks = 50;

/**
 * `{value}`, or `{error}` where the server says that the call failed, or `{nonsense}` where it answers no result.
 * `redactor` takes the server's secrets out of it.
 */
export const resultValue = (
  raw: unknown,
  redactor: Redactor,
): { value: unknown } | { error: string } | { nonsense: string } => {
  const parsed = CallResult.safeParse(raw);
  if (!parsed.success) return { nonsense: "it answered the call with what is no result" };
  const { content, structuredContent, isError } = parsed.data;
  const blocks: unknown[] = content.slice(0, maxBlocks).map((block) => Block.parse(block));
  if (content.length > maxBlocks) blocks.push(`[${content.length - maxBlocks} more parts of the answer are left out]`);
  // A structured answer repeats itself as text, for those who read no other.
  const whole = structuredContent ?? (blocks.length === 1 ? blocks[0] : blocks);
  if (isError) return { error: cut(typeof whole === "string" ? whole : JSON.stringify(whole), redactor) };
  return { value: brought(bounded(whole, redactor)) };
};

/** The end of what is cut may be half of a secret: it is left out. */
const cut = (text: string, redactor: Redactor): string => {
  const sound = text.toWellFormed();
  if (sound.length <= maxMcpResultCharacters) return redactor.text(sound);
  const left = sound.length - maxMcpResultCharacters;
  const shown = redactor.text(sound.slice(0, maxMcpResultCharacters), { cut: true });
  return `${shown} [cut: ${left} more characters (maxMcpResultCharacters)]`;
};

/** JSON that is too long is shown as the beginning of its text. */
const bounded = (value: unknown, redactor: Redactor): unknown => {
  if (typeof value === "string") return cut(value, redactor);
  const json = JSON.stringify(value) ?? "null";
  const isShown = json.length <= maxMcpResultCharacters && json.isWellFormed() && !/\\ud[89a-f]/i.test(json);
  return isShown ? redactor.json(value) : cut(json, redactor);
};
