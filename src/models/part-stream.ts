import type { StreamPart } from "./language-model.ts";

/**
 * A stream that asks for one part at a time: nothing is spoken that nobody reads. What a part's making throws reaches
 * who reads; where nobody does any more, it is nobody's.
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
