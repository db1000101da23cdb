import { WebSocket } from "ws";
import * as z from "zod";

/**
 * The part of a worker's heap that lives once all garbage is gone, with the platform's objects and buffers that it
 * holds. It may not grow; what is not collected yet says little.
 */
export type LiveHeap = {
  /** Collects all garbage first. In MB. */
  megabytes(): Promise<number>;
  close(): void;
};

const Context = z.object({
  method: z.literal("Runtime.executionContextCreated"),
  params: z.object({ context: z.object({ id: z.number() }) }),
});
const Answer = z.looseObject({ id: z.number(), result: z.unknown() });
const Prototype = z.object({ result: z.object({ objectId: z.string() }) });
const Found = z.object({ objects: z.object({ objectId: z.string() }) });
const Usage = z.object({ usedSize: z.number(), embedderHeapUsedSize: z.number(), backingStorageSize: z.number() });

/** The heap of the worker that can be inspected at this port of loopback. */
export const inspectHeap = async (port: number): Promise<LiveHeap> => {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/ws`);
  const waiting = new Map<number, (result: unknown) => void>();
  const context = Promise.withResolvers<number>();
  let asked = 0;
  socket.on("message", (data) => {
    const frame: unknown = JSON.parse(String(data));
    const created = Context.safeParse(frame);
    if (created.success) context.resolve(created.data.params.context.id);
    const answer = Answer.safeParse(frame);
    if (answer.success) waiting.get(answer.data.id)?.(answer.data.result);
  });
  const ask = (method: string, params: Record<string, unknown> = {}): Promise<unknown> => {
    asked += 1;
    const id = asked;
    socket.send(JSON.stringify({ id, method, params }));
    return new Promise((answered) => waiting.set(id, answered));
  };
  await new Promise<void>((opened, failed) => socket.once("open", opened).once("error", failed));
  await ask("Runtime.enable");
  const contextId = await context.promise;
  const made = await ask("Runtime.evaluate", { expression: "(class {}).prototype", contextId });
  const prototypeObjectId = Prototype.parse(made).result.objectId;
  return {
    megabytes: async () => {
      // workerd runs no task of `HeapProfiler.collectGarbage`; to count what lives, V8 collects all that does not.
      const found = Found.parse(await ask("Runtime.queryObjects", { prototypeObjectId }));
      await ask("Runtime.releaseObject", { objectId: found.objects.objectId });
      const { usedSize, embedderHeapUsedSize, backingStorageSize } = Usage.parse(await ask("Runtime.getHeapUsage"));
      return (usedSize + embedderHeapUsedSize + backingStorageSize) / 1024 ** 2;
    },
    close: () => socket.terminate(),
  };
};
