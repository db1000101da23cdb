import type { LanguageModel, StreamPart } from "./language-model.ts";
import { withStream } from "./with-stream.ts";

const rest = async (reader: ReadableStreamDefaultReader<StreamPart>): Promise<void> => {
  while (!(await reader.read()).done);
};

/** The parts of a stream; what broke it is its last part, an `error`. Who leaves hears of none. */
const unbrokenStream = (stream: ReadableStream<StreamPart>): ReadableStream<StreamPart> => {
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
        rest(reader).catch(() => undefined);
      },
    },
    { highWaterMark: 0 },
  );
};

/**
 * A model whose streams never break: what breaks one comes as its last part, an `error`. A stream that breaks behind
 * what was read of it, while its reader leaves, makes workerd tell of rejections in pipes that nobody can hear. So one
 * that is left is not canceled but read to its end: who leaves aborts the call, which ends it.
 */
export const unbroken = (model: LanguageModel): LanguageModel =>
  withStream(model, async (options) => {
    const result = await model.doStream(options);
    return { ...result, stream: unbrokenStream(result.stream) };
  });
