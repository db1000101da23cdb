import { afterEach, beforeEach, expect, type Mock, test, vi } from "vitest";
import { generate } from "../../../src/agent/run/generate.ts";
import { createSpeech } from "../../../src/agent/run/speech.ts";
import { classifyFailure } from "../../../src/models/failure.ts";
import type { LanguageModel, StreamPart } from "../../../src/models/language-model.ts";
import { type ScriptedPart, scriptedModel, stall, step, text } from "../../support/scripted-model.ts";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const minute = 60_000;

const generatingWith = (model: LanguageModel, signal = new AbortController().signal) =>
  generate({
    model: { model, modelId: "m", family: "rehearsal", adapt: (messages) => messages },
    composed: {
      instructions: "Answer.",
      messages: [{ role: "user", content: "Hello" }],
      tools: {},
      sections: [],
      tokens: 1,
      dropped: [],
      unshown: [],
      firstCycle: 0,
    },
    temperature: undefined,
    maxOutputTokens: 100,
    speech: createSpeech({ channel: null, mintStreamId: () => "str", tool: () => undefined }),
    signal,
    clock: { now: () => Date.now() },
    callId: String,
    progressed: () => undefined,
  });

const generating = (...parts: ScriptedPart[]) => generatingWith(scriptedModel([step(...parts)]));

const expectStalled = (ended: Mock<(end: unknown) => void>) => {
  expect(ended).toHaveBeenCalledOnce();
  expect(classifyFailure(ended.mock.calls[0]?.[0])).toMatchObject({
    code: "model_stalled",
    terminal: false,
    message: expect.stringContaining("modelStallMs (60000)"),
  });
  expect(vi.getTimerCount()).toBe(0);
};

test.each([
  ["that says nothing at all", [stall]],
  ["that falls silent in the middle", [text("Let me "), stall]],
] satisfies [string, ScriptedPart[]][])("[R4] a model %s is given up after a minute, as stalled", async (_, parts) => {
  const ended = vi.fn<(end: unknown) => void>();
  void generating(...parts).then(ended, ended);
  await vi.advanceTimersByTimeAsync(minute - 1000);
  expect(ended).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(2000);
  expectStalled(ended);
});

/** A provider that heeds no abort: its promise settles never, or its stream never ends. */
const deaf = (doStream: LanguageModel["doStream"]): LanguageModel => ({ ...scriptedModel(), doStream });

const open = (...parts: StreamPart[]): LanguageModel =>
  deaf(async () => ({
    stream: new ReadableStream<StreamPart>({
      start: (controller) => {
        for (const part of parts) controller.enqueue(part);
      },
      pull: () => new Promise(() => undefined),
    }),
  }));

const never = () => deaf(() => new Promise(() => undefined));
const silent = () => open({ type: "stream-start", warnings: [] });
const halfSaid = () =>
  open(
    { type: "stream-start", warnings: [] },
    { type: "text-start", id: "1" },
    { type: "text-delta", id: "1", delta: "Let me " },
  );

const deafOnes = [
  ["that never answers", never],
  ["that says nothing", silent],
  ["that stops midway", halfSaid],
] satisfies [string, () => LanguageModel][];

test.each(deafOnes)("[R4] a model %s and heeds no abort is given up as stalled after a minute", async (_, model) => {
  const ended = vi.fn<(end: unknown) => void>();
  void generatingWith(model()).then(ended, ended);
  await vi.advanceTimersByTimeAsync(minute - 1000);
  expect(ended).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(2000);
  expectStalled(ended);
});

test.each(deafOnes)("[R5] a cancel ends at once the call of a model %s and heeds no abort", async (_, model) => {
  const controller = new AbortController();
  const ended = vi.fn<(end: unknown) => void>();
  void generatingWith(model(), controller.signal).then(ended, ended);
  await vi.advanceTimersByTimeAsync(1000);
  controller.abort(new Error("canceled"));
  await vi.advanceTimersByTimeAsync(1);
  expect(ended.mock.calls[0]?.[0]).toMatchObject({ message: "canceled" });
  expect(vi.getTimerCount()).toBe(0);
});
