import { expect, test } from "vitest";
import type { Member, ToolCall } from "../../../src/client/index.ts";
import { besideQuestion, choiceOf, choiceResult, questionOf } from "../../../src/web/tool-calls/choice.ts";
import { callWords, chipOf, progressOf, standingOf, timeLeft } from "../../../src/web/tool-calls/standing.ts";
import { isSameValue } from "../../../src/web/tool-calls/value-layout.ts";

const joinedAt = "2026-11-22T08:00:00.000Z";
const now = Date.parse(joinedAt);
const people: Member[] = [
  { id: "ent_sara", name: "Sara", type: "human", joinedAt },
  { id: "ent_husam", name: "Husam", type: "human", joinedAt },
  { id: "ent_bot", name: "Bot", type: "service", joinedAt },
];
const awaits: NonNullable<ToolCall["awaits"]> = {
  kind: "approval",
  quorum: 2,
  answers: [],
  expiresAt: new Date(now + 60_000).toISOString(),
};
const call = (more: Partial<ToolCall> = {}): ToolCall => ({
  id: "tc_1",
  name: "deployApp",
  input: {},
  status: "requires_action",
  awaits,
  ...more,
});
const standing = (asked: ToolCall, you = "ent_husam", at = now) => standingOf(asked, you, people, at);
const sara = { entityId: "ent_sara", name: "Sara", approved: true, at: joinedAt };

test("a person may answer a call, or is told why not", () => {
  expect(standing(call())).toEqual({ may: true });
  expect(standing(call(), "ent_bot")).toEqual({ may: false, why: "Only people of this space answer." });
  const others = { ...awaits, approvers: ["ent_sara", "ent_gone"] };
  expect(standing(call({ awaits: others }))).toEqual({ may: false, why: "Only Sara can decide." });
  expect(standing(call({ awaits: { ...awaits, answers: [sara] } }), "ent_sara")).toMatchObject({ may: false });
  const enough = [sara, { ...sara, entityId: "ent_gone" }];
  expect(standing(call({ awaits: { ...awaits, answers: enough } }), "ent_sara")).toEqual({ may: true });
  expect(standing(call(), "ent_husam", now + 61_000)).toEqual({ may: false, why: "The time to answer is up." });
  expect(standing(call({ status: "complete" }))).toBeNull();
});

test("a call shows its state as a word, and its approvals as a count", () => {
  expect(chipOf(call(), { may: true }).words).toBe("Needs you");
  expect(chipOf(call(), { may: false, why: "" }).words).toBe("Waiting");
  const rejected = call({ status: "error", error: { code: "approval_rejected", message: "no" } });
  expect(chipOf(rejected, null).words).toBe("Rejected");
  expect(progressOf(call({ awaits: { ...awaits, answers: [sara] } }))).toBe("1 of 2 approvals");
  expect(progressOf(call({ awaits: { ...awaits, quorum: 1 } }))).toBeNull();
  expect(progressOf(call({ awaits: { ...awaits, answers: [{ ...sara, approved: false }] } }))).toBeNull();
  expect(callWords(call())).toBe("Deploy app waits for approval");
  expect(callWords(rejected)).toBe("Deploy app was rejected");
  const unknown = call({ status: "error", error: { code: "outcome_unknown", message: "it broke" } });
  expect([chipOf(unknown, null).words, callWords(unknown)]).toEqual([
    "Outcome unknown",
    "Deploy app may have been done",
  ]);
});

test.each([
  [0, null],
  [400, "in 1 second"],
  [65_000, "in 65 seconds"],
  [5 * 60_000, "in 5 minutes"],
  [23 * 3_600_000, "in 23 hours"],
  [72 * 3_600_000, "in 3 days"],
])("the time left of %d ms is told as %j", (ms, words) => {
  expect(timeLeft(new Date(now + ms).toISOString(), now)).toBe(words);
});

test("options of a choice are words or records, and show what they answer", () => {
  expect(choiceOf({ options: ["Tea", 7] })?.options.map(({ value }) => value)).toEqual(["Tea", 7]);
  const [hall] = choiceOf({ options: [{ id: "hall", label: "The hall", description: "40 seats" }] })?.options ?? [];
  expect(hall).toEqual({ key: "0", label: "The hall", hint: "40 seats · answers “hall”", value: "hall" });
  const [no] = choiceOf({ options: [{ label: "No, keep it", value: "delete" }] })?.options ?? [];
  expect(no).toMatchObject({ value: "delete", hint: "answers “delete”" });
  const [paid] = choiceOf({ options: [{ label: "Ok", id: "Ok", name: "Pay Eve", fee: 9 }] })?.options ?? [];
  expect(paid?.hint).toBe("Name: Pay Eve · Fee: 9");
  const tooMany = Array.from({ length: 51 }, (_, index) => index);
  for (const options of [undefined, [], [null], ["Tea", {}], tooMany]) expect(choiceOf({ options })).toBeNull();
  const form = { properties: { drink: {}, size: {} } };
  expect(choiceOf({ options: ["Tea"] }, form)).toBeNull();
  expect(questionOf({ message: "Deploy to prod?" })).toBe("Deploy to prod?");
  expect(questionOf({})).toBeNull();
});

test("[C1] what a question says beside itself shows, but for what its form is made of", () => {
  const said = { question: "Tea?", schema: "Pay Eve", multiple: "and Mallory", note: "Tea?" };
  expect(besideQuestion({ ...said, options: ["Yes"] }, undefined)).toEqual({
    schema: "Pay Eve",
    multiple: "and Mallory",
  });
  const form = { question: "Tea?", schema: { type: "boolean" } };
  expect(besideQuestion(form, undefined)).toEqual({});
  expect(besideQuestion(form, { type: "string" })).toEqual({ schema: form.schema });
  expect(besideQuestion({ question: "Tea?", options: ["Yes"], multiple: true }, undefined)).toEqual({});
});

test("the result of a choice has the shape that its schema wants", () => {
  const one = { options: [], isMultiple: false };
  const several = { options: [], isMultiple: true };
  expect(choiceResult(undefined, one, ["Tea"])).toEqual({ choice: "Tea" });
  expect(choiceResult(undefined, several, ["Tea"])).toEqual({ choices: ["Tea"] });
  expect(choiceResult({ type: "string" }, one, ["Tea"])).toBe("Tea");
  expect(choiceResult({ enum: ["Tea"] }, one, ["Tea"])).toBe("Tea");
  expect(choiceResult({ type: "object", properties: { drink: {} } }, one, ["Tea"])).toEqual({ drink: "Tea" });
  expect(choiceResult({ type: "array" }, several, ["Tea"])).toEqual(["Tea"]);
});

test("two JSON values are equal whatever the order of their keys", () => {
  expect(isSameValue({ a: [1, { b: 2 }], c: null }, { c: null, a: [1, { b: 2 }] })).toBe(true);
  expect(isSameValue({ a: undefined }, { b: undefined })).toBe(false);
  expect(isSameValue([1], [1, 2])).toBe(false);
});

test("[C1] an option shows what it answers but for its sign, its point or what nobody sees", () => {
  const options = [
    { label: "5", value: "-5" },
    { label: "1 5", value: 1.5 },
    { label: "Go", value: "go\u200B" },
    { label: "Pay\u202E001", value: "pay" },
    { label: "Pay all", value: "payAll" },
  ];
  const shown = choiceOf({ options })?.options.map(({ label, hint = "" }) => [label, hint]);
  expect(shown).toEqual([
    ["5", "answers “-5”"],
    ["1 5", "answers “1.5”"],
    ["Go", "answers “go\\u{200B}”"],
    ["Pay\\u{202E}001", "answers “pay”"],
    ["Pay all", ""],
  ]);
  expect(choiceOf({ options })?.options.map(({ value }) => value)).toEqual(["-5", "1.5", "go\u200B", "pay", "payAll"]);
  expect(questionOf({ question: "Pay \u202E001?" })).toBe("Pay \\u{202E}001?");
  expect(besideQuestion({ question: "\u200BTea?", note: "Tea?" }, undefined)).toEqual({ note: "Tea?" });
});
