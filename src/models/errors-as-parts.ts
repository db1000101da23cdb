import { type LanguageModel, type StreamPart, withStream } from "./language-model.ts";

const readToEnd = async (reader: ReadableStreamDefaultReader<StreamPart>): Promise<void> => {
  while (!(await reader.read()).done);
};

/** The parts of a stream. An error that breaks it is its last part. A reader that cancels hears of none. */
const errorsAsLastPart = (stream: ReadableStream<StreamPart>): ReadableStream<StreamPart> => {
  const reader = stream.getReader();
  let ended = false;
  let left = false;
  return new ReadableStream<StreamPart>(
    {
      async pull(controller) {
        if (ended) return controller.close();
        const next = await reader.read().catch((error: unknown) => {
          ended = true;
          return { done: false as const, value: { type: "error" as const, error } };
        });
        if (left) return;
        if (next.done) controller.close();
        else controller.enqueue(next.value);
      },
      cancel() {
        left = true;
        readToEnd(reader).catch(() => undefined);
      },
    },
    { highWaterMark: 0 },
  );
};

/**
 * A model whose streams never throw: an error comes as the last part, of type `error`. If a stream breaks while its reader
 * cancels, workerd reports rejections in pipes that nobody can handle. So a canceled stream is read to its end instead:
 * its reader aborts the call, and that ends it.
 */
export const errorsAsParts = (model: LanguageModel): LanguageModel =>
  withStream(model, async (options) => {
    const result = await model.doStream(options);
    return { ...result, stream: errorsAsLastPart(result.stream) };
  });
