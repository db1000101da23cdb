import * as z from "zod";
import { countInvisible, escapeInvisible, unseen } from "../shared/invisible.ts";
import { asSeen } from "../shared/look-alike.ts";

/** The most UTF-8 that one message may hold, in bytes. */
export const maxTextBytes = 32 * 1024;

export const textBytes = (text: string): number => new TextEncoder().encode(text).length;

const control = /[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u;

const hidden = new RegExp(String.raw`[\p{C}\p{Zl}\p{Zp}]|${unseen}`, "gv");

/** Joiners where they are spelling: between Arabic letters, and after a virama. Elsewhere they only hide. */
const spelled =
  /((?<=\p{sc=Arab}\p{M}*)\u200c(?=\p{sc=Arab})|(?<=[\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca])[\u200c\u200d])/gu;

/** A text as people are shown it: what nobody sees are escapes, joiners that spell a word aside. */
export const shownText = (text: string): string =>
  text
    .split(spelled)
    .map((part, index) => (index % 2 === 0 ? escapeInvisible(part) : part))
    .join("");

/** A name that people read: 1–64 printable characters on one line, trimmed, of which all show (C6). */
export const Name = z
  .string()
  .trim()
  .min(1, "must not be empty")
  .refine((name) => [...name].length <= 64, "must have at most 64 characters")
  .refine((name) => !control.test(name), "must be one line of printable characters")
  .refine((name) => name.isWellFormed(), "must be well-formed Unicode")
  .refine((name) => name === "" || asSeen(name) !== "", "must hold something that shows")
  .refine(
    (name) => countInvisible(name.replace(spelled, "")) === 0,
    "must hold no characters that nobody sees, such as zero-width ones: type it anew without them",
  );

/** A name from elsewhere as one of ours, without what a name may not hold; undefined where nothing is left. */
export const cleanName = (text: unknown): string | undefined => {
  if (typeof text !== "string" || text.length > 1000) return undefined;
  const shown = text.toWellFormed().replace(hidden, " ");
  const parsed = Name.safeParse([...shown.replace(/\s+/g, " ").trim()].slice(0, 64).join(""));
  return parsed.success ? parsed.data : undefined;
};

/** A text that is not blank, is well-formed and has at most `maxBytes` of UTF-8. `bound` is the name of that bound. */
export const boundedText = (maxBytes: number, bound: string) =>
  z
    .string()
    .refine((text) => text.trim().length > 0, "must not be blank")
    .refine((text) => text.isWellFormed(), "must be well-formed Unicode")
    .refine((text) => textBytes(text) <= maxBytes, {
      error: `must be at most ${maxBytes} bytes of UTF-8 (${bound})`,
      params: { code: "text_too_long" },
    });

export const MessageText = boundedText(maxTextBytes, "maxTextBytes");

/** A name that a program uses: of a memory, a goal, a secret, a tool. */
export const Label = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, "must be 1–64 of A-Z a-z 0-9 _ -");

/** Whether this is the name of a time zone, such as `Asia/Riyadh`. */
export const isTimeZone = (name: string): boolean => {
  try {
    return /^[A-Za-z]/.test(name) && new Intl.DateTimeFormat("en", { timeZone: name }) !== undefined;
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
};

export const TimeZone = z.string().max(64).refine(isTimeZone, "must be an IANA time zone, such as Asia/Riyadh");

export const Timestamp = z.iso.datetime().meta({ example: "2026-02-18T15:06:55.000Z" });

/** A schema of what is answered, which the OpenAPI document and other schemas refer to by `id`. */
export const component = <Shape extends z.core.$ZodLooseShape>(id: string, shape: Shape) =>
  z.object(shape).meta({ id });

/** The same for what is sent: it refuses fields that it does not know. */
export const strictComponent = <Shape extends z.core.$ZodLooseShape>(id: string, shape: Shape) =>
  z.strictObject(shape).meta({ id });

type Unwrapped<Schema> = Schema extends z.ZodDefault<infer Inner> | z.ZodOptional<infer Inner> ? Inner : Schema;

/** The fields of a config as a PATCH may carry them: each may be left out, and none has a default. */
export const patchOf = <Shape extends z.ZodRawShape>(shape: Shape) =>
  Object.fromEntries(
    Object.entries<z.core.SomeType>(shape).map(([name, field]) => [
      name,
      z.optional(field instanceof z.ZodDefault || field instanceof z.ZodOptional ? field.unwrap() : field),
    ]),
  ) as { [Name in keyof Shape]: z.ZodOptional<Unwrapped<Shape[Name]>> };
