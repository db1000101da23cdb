import { env } from "cloudflare:workers";
import { streamText } from "ai";
import { afterEach, describe, expect, test } from "vitest";
import { classifyFailure } from "../../src/models/failure.ts";
import { provideRehearsal, resolveModel } from "../../src/models/models.ts";
import { createRehearsalModel } from "../../src/rehearsal/rehearsal-model.ts";
import { eventLine, inbox, system, toolNames } from "../rehearsal/rehearsed-cycle.ts";
import { allOf } from "../support/all-of.ts";
import { createGate } from "../support/gate.ts";
import { installModel, scriptedModel, step, text, waitAt } from "../support/scripted-model.ts";

provideRehearsal(async (spec) => createRehearsalModel(spec));

const deps = { env, unsealSecret: async () => "key" };

const events = (lines: string[]): Response =>
  new Response(lines.map((line) => `data: ${line}\n\n`).join(""), { headers: { "content-type": "text/event-stream" } });

describe("in workerd", () => {
  let restore: (() => void) | undefined;
  afterEach(() => restore?.());

  test("the rehearsal model speaks", async () => {
    const { model } = await resolveModel({ provider: "rehearsal", deltasPerSecond: 200 }, deps);
    const text = inbox({}, [eventLine({}, { from: "Husam", text: "@Echo hi" })]);
    const { stream } = await model.doStream({
      prompt: [
        { role: "system", content: system({}) },
        { role: "user", content: [{ type: "text", text }] },
      ],
      tools: [...toolNames].map((name) => ({ type: "function", name, inputSchema: {} })),
    });
    expect(await allOf(stream)).toContainEqual({
      type: "tool-call",
      toolCallId: "rehearsal-1",
      toolName: "enter_space",
      input: '{"spaceId":"spc_FAMILY"}',
    });
  });

  test("an openai-compatible model speaks, and its redirect is not followed", async () => {
    const chunk = JSON.stringify({ choices: [{ index: 0, delta: { content: "hello" }, finish_reason: "stop" }] });
    const answers = [events([chunk, "[DONE]"]), Response.redirect("https://elsewhere.example.com/", 302)];
    const asked: string[] = [];
    const { model } = await resolveModel(
      { provider: "openai-compatible", name: "m", baseUrl: "https://api.example.com/v1", apiKeySecret: "K" },
      {
        ...deps,
        fetch: async (input) => {
          asked.push(String(input));
          return answers.shift() ?? new Response(null, { status: 500 });
        },
      },
    );
    expect(await streamText({ model, prompt: "hi", maxRetries: 0 }).text).toBe("hello");
    const parts = await allOf(streamText({ model, prompt: "hi", maxRetries: 0, onError: () => undefined }).stream);
    const failed = parts.find((part) => part.type === "error");
    expect(classifyFailure(failed?.error).code).toBe("model_misconfigured");
    expect(asked).toEqual(Array(2).fill("https://api.example.com/v1/chat/completions"));
  });

  test("a workers-ai model speaks through the binding", async () => {
    const run = async (name: string): Promise<unknown> => ({ response: `from ${name}` });
    const AI: Ai = Object.assign(Object.create(null), { run });
    const { model } = await resolveModel({ provider: "workers-ai", name: "@cf/x/y" }, { ...deps, env: { ...env, AI } });
    const { content } = await model.doGenerate({ prompt: [{ role: "user", content: [{ type: "text", text: "hi" }] }] });
    expect(content).toContainEqual({ type: "text", text: "from @cf/x/y" });
  });

  test("a scripted model takes the rehearsal model's place, and waits at its gates", async () => {
    const gate = createGate();
    const scripted = scriptedModel([step(text("one "), waitAt(gate), text("two"))]);
    restore = installModel((spec) => (spec.provider === "rehearsal" ? scripted : scriptedModel()));
    const { model } = await resolveModel({ provider: "rehearsal", deltasPerSecond: 0 }, deps);
    const whole = streamText({ model, prompt: "hi" }).text;
    await gate.reached;
    gate.open();
    expect(await whole).toBe("one two");
  });
});
