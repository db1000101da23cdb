import { type ModelMessage, streamText, type TextStreamPart, type ToolResultPart, type ToolSet } from "ai";
import { ColloquyError } from "../shared/errors.ts";
import { oncePerObject } from "../shared/once-per-object.ts";
import { visible, visibleJson } from "../shared/quote.ts";
import type { LanguageModel } from "./language-model.ts";

export type ModelCall = {
  model: LanguageModel;
  instructions: string;
  messages: ModelMessage[];
  tools?: ToolSet;
  maxOutputTokens: number;
  temperature: number | undefined;
  signal: AbortSignal;
  /** How long the model may be silent, and what is said when it was for longer. */
  stall?: { afterMs: number; message: string };
};

const shownText = <Part extends { type: string }>(part: Part): Part =>
  "text" in part && typeof part.text === "string" ? { ...part, text: visible(part.text) } : part;

const shownOutput = (output: ToolResultPart["output"]): ToolResultPart["output"] => {
  if (output.type === "json" || output.type === "error-json") return { ...output, value: visibleJson(output.value) };
  return output.type === "text" || output.type === "error-text" ? { ...output, value: visible(output.value) } : output;
};

/** A message without invisible characters, wherever they came from (C5). What the model wrote itself stays as it is. */
const shownToModel = oncePerObject((message: ModelMessage): ModelMessage => {
  if (message.role === "user") {
    const { content } = message;
    return { ...message, content: typeof content === "string" ? visible(content) : content.map(shownText) };
  }
  if (message.role !== "tool") return message;
  const content = message.content.map((part) =>
    part.type === "tool-result" ? { ...part, output: shownOutput(part.output) } : part,
  );
  return { ...message, content };
});

/**
 * One call of a model, part by part. Throws what the provider, the network or the signal threw. A call that is left by
 * its reader is aborted.
 */
export async function* streamModel({
  temperature,
  signal,
  stall,
  ...asked
}: ModelCall): AsyncGenerator<TextStreamPart<ToolSet>> {
  /** The SDK keeps a copy of the stream, which goes on when ours is left: what is left has to be aborted. */
  const left = new AbortController();
  let silence: ReturnType<typeof setTimeout> | undefined;
  const listen = (): void => {
    clearTimeout(silence);
    if (stall) silence = setTimeout(() => left.abort(), stall.afterMs);
  };
  listen();
  const result = streamText({
    ...asked,
    instructions: visible(asked.instructions),
    messages: asked.messages.map(shownToModel),
    maxRetries: 0,
    ...(temperature === undefined ? {} : { temperature }),
    abortSignal: AbortSignal.any([signal, left.signal]),
    // Errors come as parts of the stream; the default would log them with what they hold.
    onError: () => undefined,
  });
  try {
    for await (const part of result.fullStream) {
      listen();
      if (part.type === "error") throw part.error;
      if (part.type === "abort") {
        signal.throwIfAborted();
        throw new ColloquyError("model_stalled", stall?.message ?? "The model went silent");
      }
      yield part;
    }
  } finally {
    clearTimeout(silence);
    left.abort();
  }
}
