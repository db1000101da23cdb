import { streamText } from "ai";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { StreamPart } from "../../src/models/language-model.ts";
import { createOpenAiCompatibleModel } from "../../src/models/openai-compatible.ts";
import { errorsAsParts, partStream } from "../../src/models/part-stream.ts";
import { createGate } from "../support/gate.ts";
import { modelEnv } from "./model-env.ts";

/** In workerd, whose streams report a rejection that nobody waits for. */
const unheard: unknown[] = [];
const hear = (event: PromiseRejectionEvent): void => {
  event.preventDefault();
  unheard.push(event.reason);
};
beforeEach(() => {
  unheard.length = 0;
  globalThis.addEventListener("unhandledrejection", hear);
});
afterEach(() => globalThis.removeEventListener("unhandledrejection", hear));

const chunk = (content: string): Uint8Array => {
  const choices = [{ index: 0, delta: { content } }];
  const told = { id: "x", object: "chat.completion.chunk", created: 1, model: "m", choices };
  return new TextEncoder().encode(`data: ${JSON.stringify(told)}\n\n`);
};

/** An answer of a few words, after which `next` says how it goes on. */
const modelOf = (words: string[], next: (signal: AbortSignal) => Promise<never>) => {
  const waiting = words.map(chunk);
  const answer = (signal: AbortSignal): ReadableStream<Uint8Array> =>
    new ReadableStream({
      pull: async (controller) => {
        const word = waiting.shift();
        if (word) controller.enqueue(word);
        else await next(signal).catch((error: unknown) => controller.error(error));
      },
    });
  const send = async (_: unknown, init?: RequestInit): Promise<Response> =>
    new Response(answer(init?.signal ?? new AbortController().signal), {
      headers: { "content-type": "text/event-stream" },
    });
  const spec = {
    provider: "openai-compatible",
    name: "m",
    baseUrl: "https://m.invalid/v1",
    apiKey: undefined,
  } as const;
  const deps = { env: modelEnv(), unsealSecret: () => Promise.resolve(undefined), fetch: send };
  return errorsAsParts(createOpenAiCompatibleModel(spec, deps));
};

const broken = (): Promise<never> => Promise.reject(new TypeError("terminated"));

test("[R4] the error that breaks a stream is its last part", async () => {
  const { stream } = await modelOf(["a", "b"], broken).doStream({ prompt: [] });
  const parts = await Array.fromAsync(stream);
  expect(parts.filter(({ type }) => type === "text-delta")).toMatchObject([{ delta: "a" }, { delta: "b" }]);
  expect(parts.at(-1)).toMatchObject({ type: "error", error: { cause: { message: "terminated" } } });
});

test("[R4] canceling a stream that breaks later leaves no unhandled rejection", async () => {
  for (const words of [2, 3, 4, 5]) {
    const broke = Promise.withResolvers<void>();
    const left = new AbortController();
    const model = modelOf(Array<string>(words).fill("word"), () => {
      broke.resolve();
      return broken();
    });
    const { fullStream } = streamText({ model, prompt: "x", abortSignal: left.signal, onError: () => undefined });
    for await (const part of fullStream) if (part.type === "text-delta" || part.type === "error") break;
    left.abort();
    await broke.promise;
    await scheduler.wait(10);
  }
  expect(unheard).toEqual([]);
});

test("[R5] a canceled and aborted call ends at its source", async () => {
  const ended = vi.fn<() => void>();
  const left = new AbortController();
  const model = modelOf(
    ["a", "b", "c"],
    (signal) =>
      new Promise((_, reject) => {
        signal.addEventListener("abort", () => {
          ended();
          reject(signal.reason);
        });
      }),
  );
  const { fullStream } = streamText({ model, prompt: "x", abortSignal: left.signal, onError: () => undefined });
  for await (const part of fullStream) if (part.type === "text-delta") break;
  left.abort();
  await vi.waitFor(() => expect(ended).toHaveBeenCalledOnce());
  expect(unheard).toEqual([]);
});

async function* cutAt(gate: ReturnType<typeof createGate>): AsyncGenerator<StreamPart> {
  yield { type: "text-start", id: "1" };
  gate.reach();
  await gate.opened;
  throw new TypeError("terminated");
}

test("[R4] an error of the generator reaches the reader", async () => {
  const gate = createGate();
  const reader = partStream(cutAt(gate)).getReader();
  expect((await reader.read()).value).toEqual({ type: "text-start", id: "1" });
  const next = reader.read();
  gate.open();
  await expect(next).rejects.toThrow("terminated");
  expect(unheard).toEqual([]);
});

test("[R4] an error after the reader has canceled is no failure", async () => {
  const gate = createGate();
  const reader = partStream(cutAt(gate)).getReader();
  await reader.read();
  const next = reader.read();
  await gate.reached;
  const canceled = reader.cancel();
  gate.open();
  await Promise.allSettled([next, canceled]);
  await vi.waitFor(() => expect(gate.reached).resolves.toBeUndefined());
  expect(unheard).toEqual([]);
});
