import { jsonSchema, streamText, type ToolSet, tool } from "ai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { classifyFailure } from "../../src/models/failure.ts";
import { resolveModel } from "../../src/models/models.ts";
import { openAiServer } from "../../src/models/provider-access.ts";
import { type FakeOpenAi, type FakeStep, failures, startFakeOpenAi } from "../support/fake-openai.ts";
import { modelEnv } from "./model-env.ts";

let fake: FakeOpenAi;
beforeAll(async () => {
  fake = await startFakeOpenAi();
});
afterAll(() => fake.stop());

const key = "a-key-of-no-known-form";

const resolved = (secret = key) =>
  resolveModel(
    { provider: "openai-compatible", name: "fake", baseUrl: fake.baseUrl, apiKeySecret: "FAKE_KEY" },
    { env: modelEnv(), unsealSecret: async (name) => (name === "FAKE_KEY" ? secret : undefined) },
  );

const tools: ToolSet = { send_message: tool({ inputSchema: jsonSchema({ type: "object" }) }) };

type Heard = { types: string[]; text: string; input: string; failure: unknown };

/** One streamed step, as the agent's loop reads it: parts until the end or the first thing that went wrong. */
const hear = async (step: FakeStep, abortSignal?: AbortSignal, secret = key): Promise<Heard> => {
  fake.script([step]);
  const { model } = await resolved(secret);
  const heard: Heard = { types: [], text: "", input: "", failure: undefined };
  const watchdog = { firstChunkMs: 300, chunkMs: 300 };
  const result = streamText({
    model,
    prompt: "hi",
    tools,
    maxRetries: 0,
    timeout: watchdog,
    onError: () => undefined,
    ...(abortSignal && { abortSignal }),
  });
  try {
    for await (const part of result.stream) {
      heard.types.push(part.type);
      if (part.type === "text-delta") heard.text += part.text;
      if (part.type === "tool-input-delta") heard.input += part.delta;
      if (part.type === "error") heard.failure ??= part.error;
      if (part.type === "abort") heard.failure ??= part.reason;
    }
  } catch (error) {
    heard.failure ??= error;
  }
  return heard;
};

describe("over real HTTP", () => {
  test("[S3] the same config is asked with the key that its secret holds now", async () => {
    const config = { provider: "openai-compatible", name: "fake", baseUrl: fake.baseUrl, apiKeySecret: "K" } as const;
    const keys: unknown[] = [];
    for (const secret of ["first-key", "first-key", "second-key"]) {
      fake.script([{ text: ["Hello"] }]);
      const { model } = await resolveModel(config, { env: modelEnv(), unsealSecret: async () => secret });
      await streamText({ model, prompt: "hi", maxRetries: 0 }).text;
      keys.push(fake.requests.at(-1)?.authorization);
    }
    expect(keys).toEqual(["Bearer first-key", "Bearer first-key", "Bearer second-key"]);
  });

  test("text comes in deltas, with the key in its header and usage asked for", async () => {
    const heard = await hear({ text: ["Hel", "lo"] });
    expect(heard).toMatchObject({ text: "Hello", failure: undefined });
    expect(fake.requests.at(-1)).toMatchObject({
      model: "fake",
      authorization: `Bearer ${key}`,
      body: { stream: true, stream_options: { include_usage: true } },
    });
  });

  test("a tool call's input comes in deltas", async () => {
    const heard = await hear({ toolCalls: [{ name: "send_message", arguments: ['{"te', 'xt":"h', 'i"}'] }] });
    expect(heard.input).toBe('{"text":"hi"}');
    expect(heard.types).toContain("tool-call");
  });

  test.each<[string, FakeStep, string]>([
    ["429", failures.rateLimited("7"), "model_unavailable"],
    ["500", failures.serverError, "model_unavailable"],
    ["an HTML 502", { status: 502, headers: { "content-type": "text/html" }, body: "<html>" }, "model_unavailable"],
    ["401", failures.unauthorized(key), "model_rejected"],
    ["404", { status: 404, body: { error: { message: "no model" } } }, "model_rejected"],
    ["a context overflow", failures.contextOverflow, "context_overflow"],
    ["a cut", { text: ["a", "b", "c"], cutAfter: 2 }, "model_unavailable"],
    ["a stall before the first chunk", { text: ["a"], stallAfter: 0 }, "model_stalled"],
    ["a stall in the middle", { text: ["a", "b"], stallAfter: 1 }, "model_stalled"],
    ["a broken line", { text: ["a", "b"], garbageAfter: 1 }, "model_nonsense"],
    ["a web page", { status: 200, headers: { "content-type": "text/html" }, body: "<html>" }, "model_nonsense"],
    [
      "an error in the stream",
      { text: ["a"], errorAfter: { chunks: 1, error: { message: `Overloaded ${key}`, type: "overloaded_error" } } },
      "model_unavailable",
    ],
    ["a redirect", { status: 302, headers: { location: "http://169.254.169.254/" } }, "model_misconfigured"],
  ])("[R4] [S3] %s is classified, and never tells the key", async (_, step, code) => {
    const failure = classifyFailure((await hear(step)).failure);
    expect(failure.code).toBe(code);
    expect(JSON.stringify(failure)).not.toContain(key);
  });

  test.each(["4", 'a "quoted" key'.replaceAll(" ", "-")])(
    "[S3] the key %s is taken out, and nothing else breaks",
    async (secret) => {
      const error = { message: `Overloaded ${secret}`, code: 404, type: "overloaded_error" };
      const { failure } = await hear({ text: ["a"], errorAfter: { chunks: 1, error } }, undefined, secret);
      expect(classifyFailure(failure)).toMatchObject({ message: expect.stringContaining("Overloaded [redacted]") });
    },
  );

  test("[R1] an impossible key is a misconfiguration; blanks around a key are removed", async () => {
    for (const secret of ["two words", "ключ", "a\nb"]) {
      const refusal = await resolved(secret).catch((error: unknown) => error);
      expect(refusal).toMatchObject({ code: "model_misconfigured" });
      expect(String(refusal)).not.toContain(secret);
    }
    await hear({ text: ["a"] }, undefined, ` ${key}\n`);
    expect(fake.requests.at(-1)).toMatchObject({ authorization: `Bearer ${key}` });
  });

  test("[R4] Retry-After arrives", async () => {
    const failure = classifyFailure((await hear(failures.rateLimited("7"))).failure);
    expect(failure.retryAfterMs).toBe(7000);
  });

  test("[R5] an abort hangs up at the server", async () => {
    const controller = new AbortController();
    const before = fake.requests.length;
    const hearing = hear({ text: ["a", "b"], stallAfter: 1 }, controller.signal);
    await expect.poll(() => fake.requests.length).toBe(before + 1);
    controller.abort();
    await hearing;
    await expect.poll(() => fake.requests.at(-1)?.aborted).toBe(true);
  });

  test("the server is scripted over HTTP too, per model", async () => {
    const root = fake.baseUrl.replace("/v1", "");
    const post = (path: string, body: unknown) => fetch(root + path, { method: "POST", body: JSON.stringify(body) });
    expect((await post("/script", { model: "other", steps: [{ text: "scripted" }] })).status).toBe(200);
    expect((await post("/script", { steps: [{ txt: "" }] })).status).toBe(400);
    const answer = await post("/v1/chat/completions", { model: "other", messages: [] });
    expect(await answer.json()).toMatchObject({ choices: [{ message: { content: "scripted" } }] });
    expect(await (await fetch(`${root}/requests`)).json()).not.toHaveLength(0);
    expect((await post("/v1/chat/completions", { model: "other", messages: [] })).status).toBe(500);
  });
});

/** A server's body that does not end by itself, at first these bytes again and again, and what was read of it. */
const endlessBody = (line: string) => {
  const [part, told] = [new TextEncoder().encode(line), { read: 0, isLeft: false }];
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      told.read += part.length;
      if (told.read > 40_000_000) controller.close();
      else controller.enqueue(part);
    },
    cancel() {
      told.isLeft = true;
    },
  });
  return { told, body };
};

const baseUrl = "https://api.example.com/v1";
const answering = (body: ReadableStream, status: number) => ({
  fetch: async () => new Response(body, { status, headers: { "content-type": "text/event-stream" } }),
});

const streamed = async (body: ReadableStream) => {
  const config = { provider: "openai-compatible", name: "fake", baseUrl } as const;
  const deps = { env: modelEnv(), unsealSecret: async () => undefined, ...answering(body, 200) };
  const { model } = await resolveModel(config, deps);
  const failures: unknown[] = [];
  const onError = ({ error }: { error: unknown }) => void failures.push(error);
  let length = 0;
  for await (const part of streamText({ model, prompt: "hi", maxRetries: 0, onError }).fullStream) {
    if (part.type === "text-delta") length += part.text.length;
  }
  return { length, failure: failures.length === 0 ? undefined : classifyFailure(failures[0]) };
};

const embedded = (body: ReadableStream, status: number) =>
  openAiServer({ baseUrl, apiKey: undefined }, answering(body, status))
    .embeddingModel("fake")
    .doEmbed({ values: ["hi"] })
    .then(null, classifyFailure);

test("[C13] of a refusal no more is read than is looked through, however long it goes on", async () => {
  const { body, told } = endlessBody("x".repeat(4096));
  expect(await embedded(body, 500)).toMatchObject({ code: "model_unavailable" });
  expect(told.isLeft).toBe(true);
  expect(told.read).toBeLessThan(64 * 1024);
});

test.each(["x".repeat(65_536), `data: ${"x".repeat(65_536)}\n`, `data: ${"x".repeat(65_536)}\r\n`])(
  "[C13] an event of a model's stream that does not end is read no further (%#)",
  async (line) => {
    const { body, told } = endlessBody(line);
    const { failure } = await streamed(body);
    expect(failure).toMatchObject({ code: "model_nonsense", message: expect.stringMatching("2097152 bytes") });
    expect(told.isLeft).toBe(true);
    expect(told.read).toBeLessThan(4_000_000);
  },
);

test("[C13] a stream of many events goes on, however long it is as a whole", async () => {
  const event = {
    id: "1",
    created: 1,
    model: "fake",
    choices: [{ index: 0, delta: { content: "x".repeat(500_000) } }],
  };
  const { body, told } = endlessBody(`data: ${JSON.stringify(event)}\r\n\r\n`);
  expect((await streamed(body)).length).toBeGreaterThan(30_000_000);
  expect(told.isLeft).toBe(false);
});

test("[C13] an embedder's answer that does not end is read no further", async () => {
  const { body, told } = endlessBody(`[${"1,".repeat(32_768)}\n\n`);
  expect(await embedded(body, 200)).toMatchObject({
    code: "model_nonsense",
    message: expect.stringMatching("16777216 bytes"),
  });
  expect(told.isLeft).toBe(true);
});
