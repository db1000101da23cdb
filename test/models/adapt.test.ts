import type { ModelMessage } from "ai";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { adapters } from "../../src/models/adapt.ts";

const blank = fc.constantFrom("", " ", "\n");
const words = fc.oneof(blank, fc.constantFrom("hello", "INBOX (1 events)", "done"));
const callIds = fc.constantFrom("tc_01AAAAAAAAA1", "tc_01BBBBBBBBB2", "call_1", "x");

/** Any history that a run may have: calls are always followed by their results, everything else is free. */
const call = fc
  .record({ id: callIds, input: fc.constantFrom<unknown>({ a: 1 }, "{oops", null, [1]), text: words, output: words })
  .map(({ id, input, text, output }): ModelMessage[] => [
    {
      role: "assistant",
      content: [
        { type: "text", text },
        { type: "reasoning", text },
        { type: "tool-call", toolCallId: id, toolName: "t", input },
      ],
    },
    {
      role: "tool",
      content: [{ type: "tool-result", toolCallId: id, toolName: "t", output: { type: "text", value: output } }],
    },
  ]);
const user = words.map((content): ModelMessage[] => [{ role: "user", content }]);
const parts = words.map((text): ModelMessage[] => [{ role: "user", content: [{ type: "text", text }] }]);
const assistant = words.map((content): ModelMessage[] => [{ role: "assistant", content }]);
const histories = fc.array(fc.oneof(user, parts, assistant, call), { maxLength: 8 }).map((groups) => groups.flat());

const partsOf = (message: ModelMessage): { type: string; text?: string; input?: unknown }[] =>
  typeof message.content === "string" ? [{ type: "text", text: message.content }] : message.content;

describe.each(Object.entries(adapters))("what %s is given", (_, adapt) => {
  test("begins with the user, alternates, and holds nothing empty", () => {
    fc.assert(
      fc.property(histories, (messages) => {
        const adapted = adapt(messages);
        if (adapted.length > 0) expect(adapted[0]?.role).toBe("user");
        for (const [index, message] of adapted.entries()) {
          expect(message.role).not.toBe(adapted[index + 1]?.role);
          expect(partsOf(message)).not.toHaveLength(0);
          for (const part of partsOf(message)) {
            if (part.type === "text") expect(part.text?.trim()).not.toBe("");
            if (part.type === "tool-call") expect(part.input).toBeTypeOf("object");
            if (part.type === "tool-call") expect(part.input).not.toBeNull();
            if (part.type === "tool-call") expect(Array.isArray(part.input)).toBe(false);
          }
        }
      }),
    );
  });

  test("keeps every call, each followed by its result, in order", () => {
    const calls = (messages: ModelMessage[], type: string): number =>
      messages.flatMap(partsOf).filter((part) => part.type === type).length;
    const ids = (messages: ModelMessage[], type: string): unknown[] =>
      messages
        .flatMap(partsOf)
        .flatMap((part) => (part.type === type && "toolCallId" in part ? [part.toolCallId] : []));
    fc.assert(
      fc.property(histories, (messages) => {
        const adapted = adapt(messages);
        expect(calls(adapted, "tool-call")).toBe(calls(messages, "tool-call"));
        expect(ids(adapted, "tool-call")).toEqual(ids(adapted, "tool-result"));
      }),
    );
  });

  test("is pure and idempotent, and keeps the prefix", () => {
    fc.assert(
      fc.property(histories, histories, (messages, more) => {
        const before = structuredClone(messages);
        const adapted = adapt(messages);
        expect(messages).toEqual(before);
        expect(adapt(adapted)).toEqual(adapted);
        // The last message may still grow; what is before it never changes.
        expect(adapt([...messages, ...more]).slice(0, Math.max(0, adapted.length - 1))).toEqual(adapted.slice(0, -1));
      }),
    );
  });
});

test("neighbouring user messages reach an openai-compatible server as one text, line by line", () => {
  const adapted = adapters["openai-compatible"]([
    { role: "user", content: "INBOX" },
    { role: "user", content: "ACTIVITY" },
  ]);
  expect(adapted).toEqual([{ role: "user", content: [{ type: "text", text: "INBOX\nACTIVITY" }] }]);
});

test("an openai-compatible call id has nine letters and digits, one for each original id", () => {
  const ids = ["tc_01HZX01HZXAAAAAAAA1", "tc_01HZX01HZXAAAAAAAA2", "call_1", "call_2"];
  const short = adapters["openai-compatible"](
    ids.flatMap((toolCallId): ModelMessage[] => [
      { role: "user", content: "x" },
      { role: "assistant", content: [{ type: "tool-call", toolCallId, toolName: "t", input: {} }] },
    ]),
  ).flatMap((message) =>
    message.role === "assistant" && typeof message.content !== "string"
      ? message.content.flatMap((part) => (part.type === "tool-call" ? [part.toolCallId] : []))
      : [],
  );
  expect(new Set(short).size).toBe(ids.length);
  for (const id of short) expect(id).toMatch(/^[A-Za-z0-9]{9}$/);
});
