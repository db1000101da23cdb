import { textBytes } from "../../../protocol/text.ts";
import { settledWithin, unlessAborted } from "../../../shared/timeouts.ts";
import { maxAnswerBytes, maxToolOutputBytes, maxToolOutputTokens } from "../../bounds.ts";
import { estimateText } from "../../tokens.ts";
import { brought } from "../outcome.ts";
import type { Redactor } from "./redact.ts";

/** What a server answered, as far as it was read. */
export type Answer = {
  /** Left out where it is neither text nor JSON: it is not read. */
  text?: string;
  /** `cut`: there was more; `broken`: the connection broke before the answer was whole. */
  end: "whole" | "cut" | "broken";
  /** The value that the text is, where the server says that it is JSON. */
  json?: { value: unknown } | undefined;
  contentType: string;
  length: number;
};

const maxDepth = 64;

const isDeeper = (value: unknown, levels: number): boolean => {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((inner) => isDeeper(inner, levels - 1));
};

const parsedJson = (text: string): { value: unknown } | undefined => {
  try {
    const value: unknown = JSON.parse(text);
    return isDeeper(value, maxDepth) ? undefined : { value };
  } catch {
    return undefined;
  }
};

const jsonType = /^(application|text)\/([\w.-]+\+)?json$/;
const textType =
  /^$|^text\/|^application\/([\w.-]+\+)?(xml|yaml|x-yaml|javascript|x-www-form-urlencoded|x-ndjson|graphql|toml)$/;

const decoderOf = (contentType: string): TextDecoder => {
  const [, charset = "utf-8"] = /;\s*charset="?([^";\s]+)/i.exec(contentType) ?? [];
  try {
    return new TextDecoder(charset);
  } catch {
    return new TextDecoder();
  }
};

/** At most `maxAnswerBytes` of a body, and why there is no more. Throws the signal's reason. */
const readBody = async (
  body: ReadableStream<Uint8Array>,
  decoder: TextDecoder,
  signal: AbortSignal,
): Promise<{ text: string; end: Answer["end"] }> => {
  const reader = body.getReader();
  let text = "";
  let bytes = 0;
  try {
    for (;;) {
      const { done, value } = await unlessAborted(signal, reader.read());
      if (done) return { text: text + decoder.decode(), end: "whole" };
      text += decoder.decode(value.subarray(0, maxAnswerBytes - bytes), { stream: true });
      bytes += value.byteLength;
      if (bytes > maxAnswerBytes) return { text, end: "cut" };
    }
  } catch {
    signal.throwIfAborted();
    return { text, end: "broken" };
  } finally {
    void settledWithin(0, reader.cancel());
  }
};

/** Reads an answer as what its content type says. Throws the signal's reason where it was aborted. */
export const readAnswer = async ({ headers, body }: Response, signal: AbortSignal): Promise<Answer> => {
  const header = headers.get("content-type") ?? "";
  const contentType = (header.toLowerCase().split(";")[0] ?? "").trim();
  const isJson = jsonType.test(contentType);
  const about = { contentType, length: Number(headers.get("content-length") ?? Number.NaN) };
  if (body === null) return { ...about, text: "", end: "whole" };
  if (!isJson && !textType.test(contentType)) {
    void settledWithin(0, body.cancel());
    return { ...about, end: "whole" };
  }
  const read = await readBody(body, decoderOf(header), signal);
  return { ...about, ...read, json: isJson && read.end === "whole" ? parsedJson(read.text) : undefined };
};

/** How much more a text holds than a result may: 1 and less fits. */
const excess = (text: string): number =>
  Math.max(textBytes(JSON.stringify(text)) / maxToolOutputBytes, estimateText(text) / maxToolOutputTokens);

const note = `only the beginning: a result holds at most ${maxToolOutputBytes} bytes and ${maxToolOutputTokens} tokens (maxToolOutputBytes, maxToolOutputTokens)`;

/** A text as a result may hold it, in bytes and in estimated tokens; `cut`: it is only the beginning already. */
const fitText = (text: string, cut: boolean): unknown => {
  let fitting = text;
  for (let over = excess(fitting); over > 1; over = excess(fitting)) {
    fitting = fitting.slice(0, Math.floor(fitting.length * Math.min(0.95, 1 / over)));
  }
  return cut || fitting.length < text.length ? { text: fitting.toWellFormed(), note } : text;
};

/** JSON as a result may hold it: where there is too much, the beginning of its text. */
export const fitJson = (value: unknown): unknown => {
  const text = JSON.stringify(value);
  return excess(text) > 1 ? fitText(text, true) : brought(value);
};

/** An answer as the model reads it: JSON as it is, text as text, anything else described. */
export const resultOf = (
  { text, end, json, contentType, length }: Answer,
  status: number,
  redactor: Redactor,
): unknown => {
  if (text === undefined) {
    const size = Number.isSafeInteger(length) ? { bytes: length } : {};
    return { contentType: redactor.text(contentType), ...size, note: "neither text nor JSON: it is not shown" };
  }
  if (end === "broken") return redactor.text(text, { cut: true });
  if (json) return fitJson(redactor.json(json.value));
  const cut = end === "cut";
  return text === "" ? { status } : fitText(redactor.text(text, { cut }), cut);
};
