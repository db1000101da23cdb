import { settledWithin } from "../../../shared/timeouts.ts";
import { maxAnswerBytes } from "../../bounds.ts";

/** What a server answered, as far as it was read. */
export type Answer =
  | { kind: "json"; value: unknown }
  /** `cut`: there was more. */
  | { kind: "text"; text: string; cut: boolean }
  /** Neither text nor JSON: it is not read. */
  | { kind: "other"; contentType: string; bytes: number | undefined }
  /** The connection broke before the answer was whole. */
  | { kind: "broken"; text: string }
  | { kind: "empty" };

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

const isJson = (type: string): boolean => /^(application|text)\/([\w.-]+\+)?json$/.test(type);
const isText = (type: string): boolean =>
  type === "" ||
  type.startsWith("text/") ||
  /^application\/([\w.-]+\+)?(xml|yaml|x-yaml|javascript|x-www-form-urlencoded|x-ndjson|graphql|toml)$/.test(type);

const decoderOf = (contentType: string): TextDecoder => {
  const [, charset = "utf-8"] = /;\s*charset="?([^";\s]+)/i.exec(contentType) ?? [];
  try {
    return new TextDecoder(charset);
  } catch {
    return new TextDecoder();
  }
};

const leave = (body: Pick<ReadableStream, "cancel"> | Pick<ReadableStreamDefaultReader, "cancel"> | null): void =>
  void settledWithin(0, body?.cancel() ?? Promise.resolve());

/** At most `maxAnswerBytes` of a body, and why there is no more. Throws the signal's reason. */
const readBody = async (
  body: ReadableStream<Uint8Array>,
  decoder: TextDecoder,
  signal: AbortSignal,
): Promise<{ text: string; end: "whole" | "cut" | "broken" }> => {
  const reader = body.getReader();
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => aborted.reject(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  aborted.promise.catch(() => undefined);
  let text = "";
  let bytes = 0;
  try {
    for (;;) {
      signal.throwIfAborted();
      const { done, value } = await Promise.race([reader.read(), aborted.promise]);
      if (done) return { text: text + decoder.decode(), end: "whole" };
      const room = maxAnswerBytes - bytes;
      text += decoder.decode(value.subarray(0, room), { stream: true });
      bytes += value.byteLength;
      if (bytes > maxAnswerBytes) return { text, end: "cut" };
    }
  } catch {
    signal.throwIfAborted();
    return { text, end: "broken" };
  } finally {
    signal.removeEventListener("abort", abort);
    leave(reader);
  }
};

/** Reads an answer as what its content type says. Throws the signal's reason where it was aborted. */
export const readAnswer = async (response: Response, signal: AbortSignal): Promise<Answer> => {
  const contentType = response.headers.get("content-type") ?? "";
  const [type = ""] = contentType.toLowerCase().split(";");
  if (response.body === null) return { kind: "empty" };
  if (!isJson(type.trim()) && !isText(type.trim())) {
    leave(response.body);
    const length = Number(response.headers.get("content-length") ?? Number.NaN);
    return { kind: "other", contentType: type.trim(), bytes: Number.isSafeInteger(length) ? length : undefined };
  }
  const { text, end } = await readBody(response.body, decoderOf(contentType), signal);
  if (end === "broken") return { kind: "broken", text };
  const cut = end === "cut";
  if (text === "" && !cut) return { kind: "empty" };
  const json = cut || !isJson(type.trim()) ? undefined : parsedJson(text);
  return json ? { kind: "json", ...json } : { kind: "text", text, cut };
};
