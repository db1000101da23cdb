import { z } from "zod";
import { pongText } from "../protocol/events.ts";

export type ParsedFrame<Frame> =
  | { kind: "frame"; frame: Frame }
  /** A `pong`, or a type that this client does not know: a newer server may have more. */
  | { kind: "ignored" }
  | { kind: "malformed"; reason: string };

const Typed = z.object({ type: z.string() });

/** Whether the `type` itself is wrong for every kind of frame. */
const refusesType = (issues: readonly z.core.$ZodIssue[]): boolean =>
  issues.some(
    (issue) =>
      issue.path[0] === "type" ||
      (issue.code === "invalid_union" && issue.errors.length > 0 && issue.errors.every(refusesType)),
  );

/** One text frame of a stream. Never throws. */
export const parseFrame = <Schema extends z.ZodType>(schema: Schema, text: string): ParsedFrame<z.infer<Schema>> => {
  if (text === pongText) return { kind: "ignored" };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { kind: "malformed", reason: "A frame of the server is not JSON." };
  }
  const frame = schema.safeParse(value);
  if (frame.success) return { kind: "frame", frame: frame.data };
  const typed = Typed.safeParse(value);
  if (!typed.success) return { kind: "malformed", reason: "A frame of the server has no type." };
  if (refusesType(frame.error.issues)) return { kind: "ignored" };
  return { kind: "malformed", reason: `A ${typed.data.type} frame of the server does not have the expected shape.` };
};
