import { generateText, jsonSchema, streamText, type ToolSet, tool } from "ai";
import { describe, expect, test, vi } from "vitest";
import { createRehearsalModel } from "../../src/rehearsal/rehearsal-model.ts";
import { allOf } from "../support/all-of.ts";
import { eventLine, inbox, system, toolNames } from "./rehearsed-cycle.ts";

const tools: ToolSet = Object.fromEntries(
  [...toolNames].map((name) => [name, tool({ inputSchema: jsonSchema({ type: "object" }) })]),
);

const instant = createRehearsalModel({ name: "rehearsal", deltasPerSecond: 0 });

/** A step of an agent that is in the space already, asked by Husam. */
const asked = (text: string) => ({
  instructions: system({}),
  messages: [
    {
      role: "user" as const,
      content: inbox({ activeSpaceId: "spc_FAMILY" }, [eventLine({}, { from: "Husam", text })]),
    },
  ],
  tools,
  maxRetries: 0,
});

describe("through streamText", () => {
  test("it streams a message word by word, and the words make up the call's input", async () => {
    const deltas: string[] = [];
    const result = streamText({ model: instant, ...asked("@Echo say one two 🎉 three") });
    let input: unknown;
    for await (const part of result.stream) {
      if (part.type === "tool-input-delta") deltas.push(part.delta);
      if (part.type === "tool-call") input = part.input;
    }
    expect(deltas).toEqual(['{"text":"one ', "two ", "🎉 ", 'three"}']);
    expect(input).toEqual({ text: "one two 🎉 three" });
    expect(await result.finishReason).toBe("tool-calls");
  });

  test("generateText gets the same action as streamText", async () => {
    const generated = await generateText({ model: instant, ...asked("@Echo say hi") });
    const streamed = await streamText({ model: instant, ...asked("@Echo say hi") }).toolCalls;
    expect(generated.toolCalls.map(({ input }) => input)).toEqual([{ text: "hi" }]);
    expect(streamed).toMatchObject([{ toolName: "send_message", input: { text: "hi" } }]);
  });

  test("[B2] it tells a usage that grows with the prompt", async () => {
    const short = await streamText({ model: instant, ...asked("@Echo say hi") }).usage;
    const long = await streamText({ model: instant, ...asked(`@Echo say ${"hi ".repeat(500)}`) }).usage;
    expect(short.inputTokens).toBeGreaterThan(50);
    expect(long.inputTokens).toBeGreaterThan((short.inputTokens ?? 0) + 300);
    expect(long.outputTokens).toBeGreaterThan(300);
  });

  test("the same prompt always gives the same parts", async () => {
    const parts = async () => {
      const { stream } = await instant.doStream({ prompt: [{ role: "system", content: system({}) }] });
      return allOf(stream);
    };
    expect(await parts()).toEqual(await parts());
  });
});

describe("at a chosen speed", () => {
  const prompt = [
    { role: "system" as const, content: system({}) },
    {
      role: "user" as const,
      content: [{ type: "text" as const, text: asked("@Echo count to 100").messages[0]?.content ?? "" }],
    },
  ];
  const functions = [...toolNames].map((name) => ({ type: "function" as const, name, inputSchema: {} }));

  test("a delta comes at its time, not sooner", async () => {
    vi.useFakeTimers();
    try {
      const { stream } = await createRehearsalModel({ name: "r", deltasPerSecond: 10 }).doStream({
        prompt,
        tools: functions,
      });
      let deltas = 0;
      const reading = (async () => {
        for await (const part of stream) if (part.type === "tool-input-delta") deltas += 1;
      })();
      await vi.advanceTimersByTimeAsync(1050);
      expect(deltas).toBe(11);
      await vi.advanceTimersByTimeAsync(10_000);
      await reading;
      expect(deltas).toBe(100);
    } finally {
      vi.useRealTimers();
    }
  });

  test("[R5] an abort ends it at once, in the middle of a pause", async () => {
    const controller = new AbortController();
    const slow = createRehearsalModel({ name: "r", deltasPerSecond: 0.01 });
    const { stream } = await slow.doStream({ prompt, tools: functions, abortSignal: controller.signal });
    const types: string[] = [];
    const reading = (async () => {
      for await (const part of stream) {
        types.push(part.type);
        if (part.type === "tool-input-delta") controller.abort(new Error("canceled"));
      }
    })();
    await expect(reading).rejects.toThrow("canceled");
    expect(types.filter((type) => type === "tool-input-delta")).toHaveLength(1);
    await expect(slow.doStream({ prompt, abortSignal: controller.signal })).rejects.toThrow("canceled");
  });
});
