import { jsonSchema, streamText, type ToolSet, tool } from "ai";
import { describe, expect, test } from "vitest";
import { classifyFailure } from "../../src/models/failure.ts";
import { allOf } from "../support/all-of.ts";
import { createGate } from "../support/gate.ts";
import {
  call,
  cutStream,
  errorPart,
  rawCall,
  refusal,
  scriptedModel,
  stall,
  step,
  text,
  waitAt,
} from "../support/scripted-model.ts";

const tools: ToolSet = { send_message: tool({ inputSchema: jsonSchema({ type: "object" }) }) };

const begin = (model: ReturnType<typeof scriptedModel>, abortSignal?: AbortSignal) =>
  streamText({
    model,
    prompt: "hi",
    tools,
    maxRetries: 0,
    onError: () => undefined,
    ...(abortSignal && { abortSignal }),
  });

const failureOf = async (model: ReturnType<typeof scriptedModel>): Promise<unknown> => {
  try {
    for await (const part of begin(model).stream) if (part.type === "error") return part.error;
  } catch (error) {
    return error;
  }
  return undefined;
};

describe("a scripted model", () => {
  test("follows its script, cuts where the script says, and keeps the calls", async () => {
    const model = scriptedModel([step(text("a", "b"), call("send_message", { text: "hello" }, [4, 12]))]);
    const parts = await allOf(begin(model).stream);
    expect(parts.flatMap((part) => (part.type === "tool-input-delta" ? [part.delta] : []))).toEqual([
      '{"te',
      'xt":"hel',
      'lo"}',
    ]);
    expect(model.calls[0]?.prompt).toEqual([{ role: "user", content: [{ type: "text", text: "hi" }] }]);
  });

  test("waits at a gate until it is opened", async () => {
    const gate = createGate();
    const model = scriptedModel([step(text("before"), waitAt(gate), text("after"))]);
    const result = begin(model);
    const whole = result.text;
    await model.called(1);
    await gate.reached;
    gate.open();
    expect(await whole).toBe("beforeafter");
  });

  test("fails as scripted, and when the script is at its end", async () => {
    const model = scriptedModel([refusal(new TypeError("fetch failed")), step(text("a"), cutStream())]);
    model.push(step(text("a"), errorPart(new Error("Network connection lost."))));
    for (let index = 0; index < 3; index += 1) {
      expect(classifyFailure(await failureOf(model)).code).toBe("model_unavailable");
    }
    expect(String(await failureOf(model))).toContain("fewer steps");
  });

  test("gives input that is not JSON as it is", async () => {
    const model = scriptedModel([step(rawCall("send_message", '{"text": "half'))]);
    const calls = await begin(model).toolCalls;
    expect(calls).toMatchObject([{ invalid: true }]);
  });

  test("stalls until it is aborted", async () => {
    const controller = new AbortController();
    const model = scriptedModel([step(text("a"), stall)]);
    const types: string[] = [];
    for await (const part of begin(model, controller.signal).stream) {
      types.push(part.type);
      if (part.type === "text-delta") controller.abort();
    }
    expect(types.at(-1)).toBe("abort");
  });
});
