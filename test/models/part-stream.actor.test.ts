import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { StreamPart } from "../../src/models/language-model.ts";
import { partStream } from "../../src/models/part-stream.ts";
import { createGate } from "../support/gate.ts";

/** In workerd, whose streams tell of a pull that rejects when nobody reads them any more. */
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
