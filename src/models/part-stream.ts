import type { StreamPart } from "./language-model.ts";

/**
 * A stream that generates one part for each read. An error of the generator reaches the reader, and nobody after the
 * reader has canceled.
 */
export const partStream = (parts: AsyncGenerator<StreamPart>): ReadableStream<StreamPart> => {
  let left = false;
  return new ReadableStream<StreamPart>({
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
    async cancel() {
      left = true;
      await parts.return(undefined);
    },
  });
};
