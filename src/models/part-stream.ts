import { type LanguageModel, type StreamPart, withStream } from "./language-model.ts";

/**
 * A stream that generates one part for each read. An error of the generator reaches the reader, and nobody after the
 * reader has canceled.
 */
export const partStream = (parts: AsyncGenerator<StreamPart>): ReadableStream<StreamPart> => {
  let left = false;
  return new ReadableStream<StreamPart>(
    {
      async pull(controller) {
        try {
          const next = await parts.next();
          if (left) return;
          if (next.done) controller.close();
          else controller.enqueue(next.value);
        } catch (error) {
          if (!left) controller.error(error);
        }
      },
      cancel() {
        left = true;
        // It ends at its next part. Whoever has left does not wait for that.
        parts.return(undefined).catch(() => undefined);
      },
    },
    { highWaterMark: 0 },
  );
};

/** The parts of a stream. An error that breaks it is its last part. One that is left early is read to its end. */
async function* errorsAsLastPart(stream: ReadableStream<StreamPart>): AsyncGenerator<StreamPart> {
  const reader = stream.getReader();
  let isOver = false;
  try {
    while (!isOver) {
      const next = await reader.read();
      isOver = next.done;
      if (!next.done) yield next.value;
    }
  } catch (error) {
    isOver = true;
    yield { type: "error", error };
  } finally {
    while (!isOver)
      isOver = await reader.read().then(
        ({ done }) => done,
        () => true,
      );
  }
}

/**
 * A model whose streams never throw: an error comes as the last part, of type `error`. If a stream breaks while its reader
 * cancels, workerd reports rejections in pipes that nobody can handle. So a canceled stream is read to its end instead:
 * its reader aborts the call, and that ends it.
 */
export const errorsAsParts = (model: LanguageModel): LanguageModel =>
  withStream(model, async (options) => {
    const result = await model.doStream(options);
    return { ...result, stream: partStream(errorsAsLastPart(result.stream)) };
  });
