import { APICallError } from "ai";
import fc from "fast-check";
import type { LanguageModel, StreamPart } from "../../src/models/language-model.ts";
import { partStream } from "../../src/models/part-stream.ts";
import { broken, hostileJson, hostileText, type Json, mutated } from "./hostile.ts";

/** One answer of a model that follows no rules: its parts in any order, its calls of any shape, cut anywhere. */
export type FuzzedStep = { parts: FuzzedPart[]; end: "finish" | "none" | "twice" | "cut" | "error" | "refused" };

type FuzzedPart =
  | { is: "text" | "reasoning"; deltas: string[] }
  | {
      is: "call";
      tool: string;
      id: string;
      input: string;
      cuts: number[];
      how: "streamed" | "whole" | "begun" | "unended";
    }
  /** A part by itself, which nothing leads up to. */
  | { is: "loose"; type: string; id: string; more: Json; asIs: boolean };

const file = { mediaType: "text/plain", data: { type: "data", data: "aGk=" } };

/** Every type of part that the SDK knows (a new one fails the types), with what is its own. */
const partTypes: Record<StreamPart["type"], object> = {
  "text-start": {},
  "text-delta": { delta: "x" },
  "text-end": {},
  "reasoning-start": {},
  "reasoning-delta": { delta: "x" },
  "reasoning-end": {},
  "tool-input-start": { toolName: "send_message" },
  "tool-input-delta": { delta: '{"text":"' },
  "tool-input-end": {},
  "tool-approval-request": { approvalId: "a" },
  "tool-call": { toolName: "send_message", input: "{}" },
  "tool-result": { toolName: "send_message", result: { text: "done" } },
  custom: { kind: "fuzzed.part" },
  file,
  "reasoning-file": file,
  source: { sourceType: "url", url: "https://a.invalid/", title: "A" },
  "stream-start": { warnings: [{ type: "other", message: "beware" }] },
  "response-metadata": { modelId: "another", timestamp: "never" },
  finish: { finishReason: "stop", usage: {} },
  ping: {},
  raw: { rawValue: "x" },
  error: { error: "overloaded" },
};

const id = fc.constantFrom("a", "b", "c", "", "__proto__");
const spaceMark = fc.constantFrom("@spc0@", "@spc0@", "@spc1@", "@otherSpc@", "x");
const said = fc.oneof(fc.constantFrom("Hello", "@Mona, well?", "👍🏽 \\u00e9", "a".repeat(40_000)), hostileText);
const label = fc.oneof(fc.constantFrom("a-name", "b", "__proto__"), hostileText);

const inputs: Record<string, fc.Arbitrary<Json>> = {
  enter_space: fc.record({ spaceId: spaceMark }, { noNullPrototype: true }),
  send_message: fc.record({ text: said, wait: fc.boolean() }, { requiredKeys: ["text"], noNullPrototype: true }),
  send_reply: fc.record(
    { replyToMessageId: fc.constantFrom("@msg0@", "@otherMsg@"), text: said },
    { noNullPrototype: true },
  ),
  read_messages: fc.record({ spaceId: spaceMark, limit: fc.nat(300), offset: fc.nat(50) }, { noNullPrototype: true }),
  set_memories: fc.record(
    { memories: fc.array(fc.record({ key: label, value: said }, { noNullPrototype: true }), { maxLength: 3 }) },
    { noNullPrototype: true },
  ),
  set_goals: fc.record(
    { goals: fc.array(fc.record({ id: label, description: said }, { noNullPrototype: true }), { maxLength: 3 }) },
    { noNullPrototype: true },
  ),
  set_plans: fc.record(
    {
      plans: fc.array(
        fc.record(
          { id: label, name: said, instruction: said, runAfter: fc.constantFrom("2 hours", "x") },
          { noNullPrototype: true },
        ),
        { maxLength: 2 },
      ),
    },
    { noNullPrototype: true },
  ),
  get_my_runs: fc.record({ status: label, limit: fc.nat(60) }, { noNullPrototype: true }),
  stop_run: fc.record({ runId: fc.constantFrom("@run0@", "x", "@msg0@") }, { noNullPrototype: true }),
  absorb_run: fc.record({ runId: fc.constantFrom("@run0@", "x") }, { noNullPrototype: true }),
  skip: fc.constant<Json>({ reason: "nothing" }),
  leave_space: fc.constant<Json>({}),
  tool_a: hostileJson,
  no_such_tool: hostileJson,
};

const called = fc
  .constantFrom(...Object.keys(inputs), "constructor", "__proto__", "send_message", "send_message")
  .chain((tool) => {
    const valid = (Object.hasOwn(inputs, tool) ? inputs[tool] : undefined) ?? hostileJson;
    const input = fc.oneof(
      { weight: 5, arbitrary: valid.map((value) => JSON.stringify(value)) },
      { weight: 3, arbitrary: mutated(valid).map((value) => JSON.stringify(value)) },
      { weight: 3, arbitrary: broken(valid) },
      { weight: 1, arbitrary: hostileText },
    );
    return fc.record({
      is: fc.constant("call" as const),
      tool: fc.constant(tool),
      id,
      input,
      cuts: fc.array(fc.nat(400), { maxLength: 6 }),
      how: fc.constantFrom("streamed", "streamed", "streamed", "whole", "begun", "unended"),
    });
  });

const part: fc.Arbitrary<FuzzedPart> = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({ is: fc.constantFrom("text", "reasoning"), deltas: fc.array(said, { maxLength: 4 }) }),
  },
  { weight: 8, arbitrary: called },
  {
    weight: 1,
    arbitrary: fc.record({
      is: fc.constant("loose" as const),
      type: fc.constantFrom(...Object.keys(partTypes), "no-such-part"),
      id,
      more: hostileJson,
      asIs: fc.boolean(),
    }),
  },
);

export const modelStep: fc.Arbitrary<FuzzedStep> = fc.record({
  parts: fc.array(part, { maxLength: 5 }),
  end: fc.oneof(
    { weight: 12, arbitrary: fc.constant("finish" as const) },
    {
      weight: 5,
      arbitrary: fc.constantFrom(
        "none" as const,
        "twice" as const,
        "cut" as const,
        "error" as const,
        "refused" as const,
      ),
    },
  ),
});

/** Also between the halves of a surrogate pair. */
const cutAt = (text: string, cuts: number[]): string[] => {
  const places = [...new Set(cuts.filter((at) => at < text.length))].toSorted((one, other) => one - other);
  return [0, ...places].map((from, index) => text.slice(from, places[index] ?? text.length));
};

const tokens = (total: number | undefined) => ({
  total,
  noCache: undefined,
  cacheRead: undefined,
  cacheWrite: undefined,
});

const finishPart = (index: number): unknown => ({
  type: "finish",
  finishReason: {
    unified: ["stop", "length", "tool-calls", "content-filter", "other", "error"][index % 6],
    raw: undefined,
  },
  usage: {
    inputTokens: tokens([100, 0, -5, Number.NaN, undefined, 1e12][index % 6]),
    outputTokens: {
      total: [10, Number.POSITIVE_INFINITY, undefined, 1.5][index % 4],
      text: undefined,
      reasoning: undefined,
    },
  },
});

const partsOf = (sent: FuzzedPart, key: string): unknown[] => {
  if (sent.is === "loose") {
    const { type, id: callId, more, asIs } = sent;
    const own: object = Object.hasOwn(partTypes, type) ? partTypes[type as StreamPart["type"]] : {};
    const spoiled = asIs ? own : Object.fromEntries(Object.keys(own).map((name) => [name, more]));
    return [{ type, id: callId, toolCallId: callId, ...spoiled }];
  }
  if (sent.is !== "call") {
    const deltas = sent.deltas.map((delta) => ({ type: `${sent.is}-delta`, id: key, delta }));
    return [{ type: `${sent.is}-start`, id: key }, ...deltas, { type: `${sent.is}-end`, id: key }];
  }
  const { tool: toolName, id: callId, input, cuts, how } = sent;
  const whole = { type: "tool-call", toolCallId: callId, toolName, input };
  if (how === "whole") return [whole];
  const streamed = [
    { type: "tool-input-start", id: callId, toolName },
    ...cutAt(input, cuts).map((delta) => ({ type: "tool-input-delta", id: callId, delta })),
  ];
  if (how === "begun") return streamed;
  return how === "unended" ? [...streamed, whole] : [...streamed, { type: "tool-input-end", id: callId }, whole];
};

async function* play({ parts, end }: FuzzedStep, index: number): AsyncGenerator<StreamPart> {
  const all = [
    { type: "stream-start", warnings: [] },
    ...parts.flatMap((sent, place) => partsOf(sent, `${index}-${place}`)),
    ...(end === "error" ? [{ type: "error", error: { message: "overloaded", code: null } }] : []),
    ...(end === "finish" || end === "twice" ? [finishPart(index)] : []),
    ...(end === "twice" ? [finishPart(index + 1)] : []),
  ];
  // A provider may send what its types do not allow.
  for (const one of all) yield one as StreamPart;
  if (end === "cut") throw new TypeError("terminated");
}

/** A model that says what `next` gives, each time that it is asked. */
export const fuzzedModel = (next: () => FuzzedStep): LanguageModel => {
  let asked = 0;
  return {
    specificationVersion: "v4",
    provider: "fuzzed",
    modelId: "fuzzed",
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error("agents stream")),
    doStream: async () => {
      const step = next();
      asked += 1;
      if (step.end === "refused") {
        const statusCode = [400, 401, 429, 500, 503, 418][asked % 6] ?? 500;
        throw new APICallError({ message: "refused", url: "https://m.invalid", requestBodyValues: {}, statusCode });
      }
      return { stream: partStream(play(step, asked)) };
    },
  };
};
