import type { StreamPart } from "./language-model.ts";

/** A stream that asks for one part at a time: nothing is spoken that nobody reads. What a part's making throws, it throws. */
export const partStream = (parts: AsyncGenerator<StreamPart>): ReadableStream<StreamPart> =>
  new ReadableStream<StreamPart>({
    async pull(controller) {
      const next = await parts.next();
      if (next.done) controller.close();
      else controller.enqueue(next.value);
    },
    async cancel() {
      await parts.return(undefined);
    },
  });
