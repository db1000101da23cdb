import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { generate } from "../../../src/agent/think/generate.ts";
import { Speech } from "../../../src/agent/think/speech.ts";
import { type ScriptedPart, scriptedModel, stall, step, text } from "../../support/scripted-model.ts";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const minute = 60_000;

const generating = (...parts: ScriptedPart[]) =>
  generate({
    model: { model: scriptedModel([step(...parts)]), modelId: "m", family: "rehearsal", adapt: (messages) => messages },
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
    speech: new Speech(
      null,
      () => "str",
      () => undefined,
    ),
    signal: new AbortController().signal,
    clock: { now: () => Date.now() },
    callId: String,
    progressed: () => undefined,
  });

test.each([
  ["that says nothing at all", [stall]],
  ["that falls silent in the middle", [text("Let me "), stall]],
] satisfies [string, ScriptedPart[]][])("[R4] a model %s is given up after a minute, as stalled", async (_, parts) => {
  const ended = vi.fn<(end: unknown) => void>();
  const generation = generating(...parts).then(ended, ended);
  await vi.advanceTimersByTimeAsync(minute - 1000);
  expect(ended).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(2000);
  await generation;
  expect(ended.mock.calls[0]?.[0]).toBeInstanceOf(Error);
});
