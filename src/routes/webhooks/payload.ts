import { ColloquyError } from "../../shared/errors.ts";
import { requireSound } from "../../shared/sound-json.ts";

/** Any JSON value. */
export type Json = string | number | boolean | null | Json[] | { [name: string]: Json };

const decoded = (body: Uint8Array): string => {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: false }).decode(body);
  } catch (cause) {
    throw new ColloquyError("invalid_request", "The body is not UTF-8: send JSON, a form or text.", { cause });
  }
};

const parsed = (text: string): Json => {
  let value: Json;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new ColloquyError("invalid_json", "The body is not JSON: check quotes, commas and brackets.", { cause });
  }
  requireSound(value);
  return value;
};

/** A form's fields: those of one name as a list. A form of nothing but `payload` wraps JSON, as GitHub's do. */
const ofForm = (text: string): Json => {
  const fields = new Map<string, string[]>();
  for (const [name, value] of new URLSearchParams(text)) fields.set(name, [...(fields.get(name) ?? []), value]);
  const [wrapped, ...more] = fields.get("payload") ?? [];
  if (wrapped !== undefined && more.length === 0 && fields.size === 1) return parsed(wrapped);
  return Object.fromEntries(
    [...fields].map(([name, [first = "", ...rest]]) => [name, rest.length ? [first, ...rest] : first]),
  );
};

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};

/**
 * The payload of a proven delivery, by its media type: JSON, a form's fields, or text. With another type or none it is
 * parsed as JSON, else taken as text. Throws `invalid_json` and `invalid_request`.
 */
export const payloadOf = (contentType: string | null, body: Uint8Array): Json => {
  const text = decoded(body);
  const mediaType = (contentType ?? "").split(";")[0]?.trim().toLowerCase() ?? "";
  if (text.trim() === "") return null;
  if (/^application\/(?:[\w.-]+\+)?json$/.test(mediaType)) return parsed(text);
  if (mediaType === "application/x-www-form-urlencoded") return ofForm(text);
  if (mediaType.startsWith("text/")) return text;
  return isJson(text) ? parsed(text) : text;
};
