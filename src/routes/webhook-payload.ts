import type { Json } from "../protocol/block.ts";
import { type HookSettings, placeholder } from "../protocol/hook.ts";
import { ColloquyError } from "../shared/errors.ts";
import { excess, maxJsonValues, soundJsonIn } from "../shared/sound-json.ts";

const decoded = (body: Uint8Array): string => {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: false }).decode(body);
  } catch (cause) {
    throw new ColloquyError("invalid_request", "The body is not UTF-8: send JSON, a form or text.", { cause });
  }
};

const parsed = (text: string): Json => {
  const json = soundJsonIn(text);
  if (json !== undefined) return json;
  throw new ColloquyError("invalid_json", "The body is not JSON: check quotes, commas and brackets.");
};

/** A form's fields: those of one name as a list. A form of nothing but `payload` wraps JSON, as GitHub's do. */
const ofForm = (text: string): Json => {
  const fields = new Map<string, string[]>();
  if (text.split("&", maxJsonValues + 1).length > maxJsonValues) {
    const message = `The form must have at most ${maxJsonValues} fields (maxJsonValues): send less at once.`;
    throw new ColloquyError("invalid_request", message);
  }
  for (const [name, value] of new URLSearchParams(text)) {
    const values = fields.get(name);
    if (values) values.push(value);
    else fields.set(name, [value]);
  }
  const [wrapped, ...more] = fields.get("payload") ?? [];
  if (wrapped !== undefined && more.length === 0 && fields.size === 1) return parsed(wrapped);
  return Object.fromEntries(
    [...fields].map(([name, [first = "", ...rest]]) => [name, rest.length ? [first, ...rest] : first]),
  );
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
  // Lines of JSON, and tables, may hold as much as no JSON may.
  const json = excess(text) ? undefined : soundJsonIn(text);
  return json === undefined ? text : json;
};

/**
 * The part of a delivery that an agent reads. A template gives a text of at most `maxTextCharacters`, which always fits
 * an event. Without a template, the agent reads the whole payload.
 */
const maxTextCharacters = 10_000;
const maxValueCharacters = 4000;
const maxEventTypeCharacters = 200;

const cut = (text: string, length: number): string => {
  if (text.length <= length) return text;
  const kept = text.slice(0, length);
  return `${kept.isWellFormed() ? kept : kept.slice(0, -1)}… (cut: ${text.length} characters in all)`;
};

const at = (value: Json | undefined, path: string[]): Json | undefined =>
  path.reduce<Json | undefined>(
    (held, name) =>
      typeof held === "object" && held !== null ? Object.getOwnPropertyDescriptor(held, name)?.value : undefined,
    value,
  );

/** Texts as they are, everything else as JSON, and nothing for what is not there. */
const written = (value: Json | undefined): string => {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
};

/** A template with what each placeholder stands for. Values are never read as templates themselves. */
export const render = (template: string, event: string | undefined, payload: Json): string =>
  cut(
    template.replaceAll(placeholder, (_, root: string, path: string) =>
      cut(written(at(root === "event" ? (event ?? null) : payload, path.split(".").slice(1))), maxValueCharacters),
    ),
    maxTextCharacters,
  );

/** Whether a hook tells its agent of events of this type: each choice stands for itself and for all below it. */
export const isWanted = (events: string[] | undefined, event: string | undefined): boolean =>
  events === undefined || events.some((chosen) => event === chosen || event?.startsWith(`${chosen}.`) === true);

/** The payload of the agent's event: `{event, text}` by a template, `{event, payload}` without one. */
export const readingOf = ({ template }: HookSettings, eventType: string | undefined, payload: Json): Json => {
  const event = eventType?.slice(0, maxEventTypeCharacters).toWellFormed();
  return {
    ...(event === undefined ? {} : { event }),
    ...(template === undefined ? { payload } : { text: render(template, event, payload) }),
  };
};
