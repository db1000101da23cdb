import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, expect, inject, onTestFinished, test, vi } from "vitest";
import * as z from "zod";
import type { Env } from "../../src/env/env.ts";
import { AgentConfig } from "../../src/protocol/agent.ts";
import type { EntityRef } from "../../src/protocol/rpc.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { compartmentId } from "../../src/shared/ids.ts";
import { createGate } from "../support/gate.ts";
import { SeenRequests } from "../support/remote.ts";
import { apiError, call, refusal, step, text } from "../support/scripted-model.ts";
import { ask } from "./calls/scene.ts";
import {
  type AgentSettings,
  agentStub,
  ended,
  holdSpeech,
  ids,
  openScene,
  passTime,
  runsOf,
  scripted,
} from "./fixture.ts";

afterEach(() => void vi.restoreAllMocks());

const Value = z.union([
  z.strictObject({ stringValue: z.string() }).transform((value) => value.stringValue),
  z.strictObject({ boolValue: z.boolean() }).transform((value) => value.boolValue),
  z.strictObject({ intValue: z.string() }).transform((value) => Number(value.intValue)),
  z.strictObject({ doubleValue: z.number() }).transform((value) => value.doubleValue),
  z
    .strictObject({ arrayValue: z.strictObject({ values: z.array(z.strictObject({ stringValue: z.string() })) }) })
    .transform((value) => value.arrayValue.values.map((each) => each.stringValue)),
]);
const Attributes = z
  .array(z.strictObject({ key: z.string(), value: Value }))
  .transform((all) => Object.fromEntries(all.map(({ key, value }) => [key, value])));
/** A span, by the names of OTLP's JSON; anything else in it fails. */
const SentSpan = z.strictObject({
  traceId: z.string().regex(/^[0-9a-f]{32}$/),
  spanId: z.string().regex(/^[0-9a-f]{16}$/),
  parentSpanId: z
    .string()
    .regex(/^[0-9a-f]{16}$/)
    .optional(),
  name: z.string(),
  kind: z.union([z.literal(1), z.literal(3)]),
  startTimeUnixNano: z.string().regex(/^\d{19}$/),
  endTimeUnixNano: z.string().regex(/^\d{19}$/),
  attributes: Attributes,
  status: z.strictObject({ code: z.literal(2).optional() }),
});
const Export = z.strictObject({
  resourceSpans: z.tuple([
    z.strictObject({
      resource: z.strictObject({ attributes: Attributes }),
      scopeSpans: z.tuple([
        z.strictObject({ scope: z.strictObject({ name: z.literal("colloquy") }), spans: z.array(SentSpan) }),
      ]),
    }),
  ]),
});

/** An agent whose deployment sends spans to `kind` of the loopback server, under a path of its own. */
const stage = async (kind: string, variables: Partial<Env> = {}, settings: Partial<AgentSettings> = {}) => {
  const scene = await openScene({ continuity: "timeline", ...settings });
  const path = `/${kind}/${ids.mint("key")}`;
  await configure(scene.analyst, { OTEL_EXPORTER_OTLP_ENDPOINT: `${inject("remote")}${path}/`, ...variables });
  return { ...scene, received: () => receivedAt(path) };
};

/** The variables of the deployment, for as long as the test runs. */
const configure = (agent: EntityRef, variables: Partial<Env>): Promise<void> =>
  runInDurableObject(agentStub(agent), (instance) => {
    const { env } = z.object({ env: z.custom<Env>() }).parse({ env: Reflect.get(instance, "env") });
    const before = { ...env };
    Object.assign(env, variables);
    onTestFinished(() => {
      for (const name of Object.keys(variables)) Reflect.deleteProperty(env, name);
      Object.assign(env, before);
    });
  });

const receivedAt = async (path: string) => {
  const answer = await fetch(`${inject("remote")}/requests?path=${path}`);
  return SeenRequests.parse(await answer.json());
};

const spansIn = (requests: z.infer<typeof SeenRequests>) =>
  requests.flatMap(({ body }) => Export.parse(JSON.parse(body)).resourceSpans[0].scopeSpans[0].spans);

/** Messages as the conventions have them; anything else in one fails. */
const Parts = z.array(
  z.discriminatedUnion("type", [
    z.strictObject({ type: z.literal("text"), content: z.string() }),
    z.strictObject({ type: z.literal("tool_call"), id: z.string(), name: z.string(), arguments: z.json() }),
    z.strictObject({ type: z.literal("tool_call_response"), id: z.string(), response: z.json() }),
  ]),
);
const Messages = z.array(
  z.strictObject({
    role: z.enum(["user", "assistant", "tool"]),
    parts: Parts,
    finish_reason: z.enum(["stop", "length", "content_filter", "tool_call", "error"]).optional(),
  }),
);

const secretText = "The launch code is 4711";

test("a run, its steps and its tool calls are spans of one trace, without any spoken words", async () => {
  const { analyst, space, received, ask } = await stage("answer", {
    OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20collector-key, x-tenant=acme",
    OTEL_SERVICE_NAME: "our-agents",
  });
  scripted([step(text("")), step(call("send_message", { text: secretText })), step(text("Done."))]);
  const [run] = await ask(`@Analyst ${secretText}?`);
  const requests = await vi.waitFor(async () => {
    const all = await received();
    expect(spansIn(all).some(({ name }) => name.startsWith("invoke_agent"))).toBe(true);
    return all;
  });
  expect(requests[0]).toMatchObject({
    method: "POST",
    url: expect.stringMatching(/[^/]\/v1\/traces$/),
    headers: { "content-type": "application/json", authorization: "Bearer collector-key", "x-tenant": "acme" },
  });
  expect(Export.parse(JSON.parse(requests[0]?.body ?? "")).resourceSpans[0].resource.attributes).toEqual({
    "service.name": "our-agents",
  });
  const spans = spansIn(requests);
  expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1);
  expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(spans.length);
  for (const { attributes, startTimeUnixNano, endTimeUnixNano } of spans) {
    expect(attributes).toMatchObject({ "colloquy.run.id": run?.id, "gen_ai.agent.id": analyst.id });
    expect(BigInt(endTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(startTimeUnixNano));
  }
  const [, first, tool, second, whole] = spans;
  expect(whole).toMatchObject({ name: "invoke_agent Analyst", kind: 1, status: {} });
  expect(whole?.parentSpanId).toBeUndefined();
  expect(whole?.attributes).toMatchObject({
    "gen_ai.operation.name": "invoke_agent",
    "gen_ai.provider.name": "rehearsal",
    "gen_ai.request.model": "rehearsal",
    "colloquy.run.status": "completed",
    "colloquy.space.ids": [space.id],
  });
  for (const each of [first, second]) {
    expect(each).toMatchObject({ kind: 3, parentSpanId: whole?.spanId });
    expect(each?.attributes).toMatchObject({
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "rehearsal",
      "gen_ai.request.model": "rehearsal",
      "gen_ai.request.stream": true,
      "gen_ai.usage.input_tokens": expect.any(Number),
      "gen_ai.response.finish_reasons": [expect.any(String)],
    });
  }
  expect(tool).toMatchObject({
    name: "execute_tool send_message",
    kind: 1,
    parentSpanId: first?.spanId,
    status: {},
  });
  expect(tool?.attributes).toMatchObject({
    "gen_ai.tool.name": "send_message",
    "gen_ai.tool.call.id": expect.any(String),
  });
  expect(requests.map(({ body }) => body).join()).not.toContain("launch code");
});

test("what was said is in the spans where the deployment asks for it", async () => {
  const { received, ask } = await stage("answer", {
    OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: "true",
  });
  scripted([step(call("send_message", { text: secretText })), step(text("Done."))]);
  await ask("@Analyst well?");
  const spans = await vi.waitFor(async () => {
    const all = spansIn(await received());
    expect(all).toHaveLength(4);
    return all;
  });
  expect(spans[0]?.attributes["gen_ai.input.messages"]).toContain("@Analyst well?");
  expect(spans[0]?.attributes["gen_ai.output.messages"]).toContain(secretText);
  const messagesIn = (span: (typeof spans)[number] | undefined, attribute: string) =>
    Messages.parse(JSON.parse(String(span?.attributes[attribute])));
  expect(messagesIn(spans[2], "gen_ai.input.messages").map(({ role, parts }) => [role, parts[0]?.type])).toEqual([
    ["user", "text"],
    ["assistant", "tool_call"],
    ["tool", "tool_call_response"],
  ]);
  expect(messagesIn(spans[0], "gen_ai.output.messages")).toMatchObject([
    { role: "assistant", parts: [{ type: "tool_call", name: "send_message" }], finish_reason: "tool_call" },
  ]);
  const instructions = Parts.parse(JSON.parse(String(spans[0]?.attributes["gen_ai.system_instructions"])));
  expect(instructions).toMatchObject([{ type: "text", content: expect.stringContaining("Analyst") }]);
  expect(spans[1]?.attributes["gen_ai.tool.call.arguments"]).toContain(secretText);
  expect(spans[1]?.attributes["gen_ai.tool.call.result"]).toContain("true");
});

test("[C17] spans of a confidential space hold no texts, and no names that a model made up", async () => {
  const { analyst, house, husam, received } = await stage("answer");
  const board = await house.space("Board", [husam, analyst], true);
  const mind = { ...analyst, id: compartmentId(ids, analyst.id, board.id) };
  const path = `/answer/${ids.mint("key")}`;
  await configure(mind, {
    OTEL_EXPORTER_OTLP_ENDPOINT: `${inject("remote")}${path}/`,
    OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: "true",
  });
  scripted([step(call("send_message", { text: secretText })), step(call(secretText, {})), step(text(secretText))]);
  await board.post(husam, `@Analyst ${secretText}`);
  const spans = await vi.waitFor(async () => {
    const all = spansIn(await receivedAt(path));
    expect(all.at(-1)?.name).toBe("invoke_agent Analyst");
    return all;
  });
  expect(spans.map(({ name }) => name)).toEqual([
    ...["chat rehearsal", "execute_tool send_message", "chat rehearsal", "execute_tool unknown", "chat rehearsal"],
    "invoke_agent Analyst",
  ]);
  expect(spans[3]?.attributes["error.type"]).toBe("tool_unknown");
  expect(JSON.stringify([spans, await received()])).not.toContain("launch code");
});

test("[C17] nor does the span of a call there that was canceled, of a tool that a model made up", async () => {
  const { analyst, house, husam } = await stage("answer");
  const board = await house.space("Board", [husam, analyst], true);
  const mind = { ...analyst, id: compartmentId(ids, analyst.id, board.id) };
  const path = `/answer/${ids.mint("key")}`;
  await configure(mind, { OTEL_EXPORTER_OTLP_ENDPOINT: `${inject("remote")}${path}/` });
  const saying = createGate();
  holdSpeech(saying, "before");
  scripted([step(call("send_message", { text: "Wait" }), call(secretText, {}))]);
  await board.post(husam, "@Analyst well?");
  await saying.reached;
  const [run] = await runsOf(house.workspaceId, mind);
  unwrap(await env.AGENT.getByName(mind.id).cancelRun(house.workspaceId, run?.id ?? ""));
  saying.open();
  const spans = await vi.waitFor(async () => {
    const all = spansIn(await receivedAt(path));
    expect(all.at(-1)?.name).toBe("invoke_agent Analyst");
    return all;
  });
  const canceled = spans.find(
    ({ attributes }) => attributes["error.type"] === "run_canceled" && attributes["gen_ai.tool.name"],
  );
  expect(canceled?.name).toBe("execute_tool unknown");
  expect(JSON.stringify(spans)).not.toContain("launch code");
});

test("a tool call that failed says by which error", async () => {
  const { received, ask } = await stage("answer");
  scripted([step(call("nonsense", {})), step(text("Done."))]);
  await ask("@Analyst well?");
  await vi.waitFor(async () => {
    const tool = spansIn(await received()).find(({ name }) => name === "execute_tool nonsense");
    expect(tool).toMatchObject({ status: { code: 2 }, attributes: { "error.type": "tool_unknown" } });
  });
});

test("a run that ends while it waits for people is a span, and so is the unanswered call", async () => {
  const { tools } = AgentConfig.parse({ name: "Analyst", tools: [{ description: "Asks", ...ask }] });
  for (const how of ["a person", "another run"] as const) {
    const { house, husam, analyst, space, received } = await stage("answer", {}, { tools });
    const runs = () => runsOf(house.workspaceId, analyst);
    scripted(async (_, index) => {
      if (index === 0) return step(call("confirm", {}));
      return index === 1 ? step(call("stop_run", { runId: (await runs()).at(-1)?.id ?? "" })) : step(text("Done."));
    });
    await space.post(husam, "@Analyst well?");
    await vi.waitFor(async () => expect((await runs())[0]?.status).toBe("waiting_tool"));
    const [waiting] = await runs();
    if (how === "a person")
      unwrap(await env.AGENT.getByName(analyst.id).cancelRun(house.workspaceId, waiting?.id ?? ""));
    else await space.post(husam, "Stop that");
    const ofRun = await vi.waitFor(async () => {
      const all = spansIn(await received()).filter(({ attributes }) => attributes["colloquy.run.id"] === waiting?.id);
      expect(all.some(({ name }) => name === "invoke_agent Analyst")).toBe(true);
      return all;
    });
    expect(ofRun.map(({ name }) => name).toSorted()).toEqual([
      "chat rehearsal",
      "execute_tool confirm",
      "invoke_agent Analyst",
    ]);
    const tool = ofRun.find(({ name }) => name === "execute_tool confirm");
    expect(tool).toMatchObject({ status: { code: 2 }, attributes: { "error.type": "run_canceled" } });
  }
});

test("a failed step is a span of its own that says how, and the next one is in the same trace", async () => {
  const { house, husam, analyst, space, received } = await stage("answer");
  const down = apiError(503, { message: secretText, responseHeaders: { "retry-after": "60" } });
  scripted([refusal(down), step(text("Done."))]);
  await space.post(husam, "@Analyst well?");
  await vi.waitFor(async () => expect(spansIn(await received())).toHaveLength(1));
  await passTime(analyst, 71_000);
  await ended(house.workspaceId, analyst, 1);
  const spans = await vi.waitFor(async () => {
    const all = spansIn(await received());
    expect(all.at(-1)?.name).toBe("invoke_agent Analyst");
    return all;
  });
  expect(spans[0]).toMatchObject({ status: { code: 2 }, attributes: { "error.type": "model_unavailable" } });
  expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1);
  expect(JSON.stringify(spans)).not.toContain("launch code");
});

test("a collector that refuses or never answers delays no run; lost spans are a line of the log", async () => {
  const warned = vi.spyOn(console, "warn").mockImplementation(() => undefined);
  for (const kind of ["nowhere", "silent"]) {
    const { house, husam, analyst, space, received } = await stage(kind);
    scripted(() => step(text("Done.")));
    for (let runs = 1; runs <= 2; runs += 1) {
      await space.post(husam, "@Analyst well?");
      expect((await ended(house.workspaceId, analyst, runs)).map(({ status }) => status)).not.toContain("failed");
    }
    await vi.waitFor(async () => expect((await received()).length).toBeGreaterThan(0));
  }
  await vi.waitFor(() => {
    const lines = warned.mock.calls.map(([line]) => String(line)).filter((line) => line.includes("spans.lost"));
    expect(lines[0]).toContain("the collector answered 404");
    expect(lines.join()).not.toContain("well?");
  });
});
