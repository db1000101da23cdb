import { type HookSettings, placeholder } from "../../protocol/hook.ts";
import type { Json } from "./payload.ts";

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
