import type { Message } from "../../protocol/message.ts";
import { shownCall } from "../../shared/call-line.ts";
import { jsonOf, quote, quoteJson } from "../../shared/quote.ts";
import type { KnownOrigin } from "../records.ts";

/** How texts, calls, messages and times stand in a prompt. */
export { callLine } from "../../shared/call-line.ts";
export {
  brief,
  briefJson,
  excerpt,
  jsonOf,
  linesIn,
  plain,
  quote,
  quoteJson,
  quoteLines,
  unquoteLine,
} from "../../shared/quote.ts";

/** Stands for the words of a step that had none: providers refuse empty content. */
export const noAnswer = "(no answer)";

/** A message's content: its text, quoted, or the tool call that it shows. */
export const contentOf = ({ text, toolCall }: Pick<Message, "text" | "toolCall">): string =>
  toolCall ? shownCall(toolCall) : quote(text ?? "");

/** Why a message was sent here, as far as the reader may know it. */
export const originNote = (origin: KnownOrigin): string => {
  if ("sourceType" in origin) {
    const { sourceType, sourceRunId, sourceName, sourceEvent } = origin;
    const named = sourceName === undefined ? `a ${sourceType}` : `the ${sourceType} ${quote(sourceName)}`;
    const payload = sourceType === "plan" ? undefined : jsonOf(sourceEvent ?? "");
    const words = sourceEvent === undefined ? "" : quote(sourceEvent);
    const event = payload === undefined ? words : quoteJson(payload);
    if (sourceType === "several")
      return `[sent by ${sourceRunId}, which answered several events${event && `: ${event}`}]`;
    const did = sourceType === "plan" ? `was due${event && `: ${event}`}` : `sent ${event || "an event"}`;
    return `[sent because ${named} ${did}]`;
  }
  const where = origin.sourceSpaceName === undefined ? "another space" : quote(origin.sourceSpaceName);
  if (origin.sourceSenderName === undefined) return `[sent because of an event in ${where}]`;
  const asked = origin.sourceEvent === undefined ? "asked" : `asked ${quote(origin.sourceEvent)}`;
  return `[sent because ${quote(origin.sourceSenderName)} ${asked} in ${where}]`;
};

/** Seconds are enough for a reader, and shorter. */
export const shortTime = (iso: string): string => iso.replace(/\.\d+(Z|[+-]\d\d:\d\d)$/, "$1");

const minuteMs = 60_000;
const hourMinutes = 60;
const dayHours = 24;

/** How long something took, to the minute: `2 h`, `1 h 30 min`, `5 min`. */
export const duration = (milliseconds: number): string => {
  const minutes = Math.round(milliseconds / minuteMs);
  const [hours, rest] = [Math.floor(minutes / hourMinutes), minutes % hourMinutes];
  return [...(hours > 0 ? [`${hours} h`] : []), ...(rest > 0 || hours === 0 ? [`${rest} min`] : [])].join(" ");
};

/** The time from now, as people say it: `in 17h 53m`, `in 3d 2h`; a past time is `due now`. */
export const fromNow = (nowIso: string, thenIso: string): string => {
  const minutes = Math.floor((Date.parse(thenIso) - Date.parse(nowIso)) / minuteMs);
  if (minutes < 1) return minutes < 0 ? "due now" : "in less than 1m";
  const hours = Math.floor(minutes / hourMinutes);
  if (hours === 0) return `in ${minutes}m`;
  if (hours < dayHours) return `in ${hours}h ${String(minutes % hourMinutes).padStart(2, "0")}m`;
  return `in ${Math.floor(hours / dayHours)}d ${hours % dayHours}h`;
};
