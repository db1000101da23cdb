import { expect, test } from "vitest";
import type { AwaitedAnswer, ToolAnswer, ToolCall } from "../../src/protocol/tool-call.ts";
import { createIds } from "../../src/shared/ids.ts";
import { advanced, begun, judge, toldOutcome, type Verdict, withShown } from "../../src/space/tool-calls/call-state.ts";
import { refusal } from "../support/refusal.ts";

const ids = createIds("for tests of the verdict only");
const nova = ids.mint("ent");
const id = ids.mintOwned("tc", nova);
const [ann, bob, cyd] = ["Ann", "Bob", "Cyd"].map((name) => ({ entityId: ids.derive("ent", name), name }));
const at = "2026-02-18T15:06:55.000Z";

const waiting = (awaits: Partial<AwaitedAnswer>): ToolCall =>
  withShown({
    id,
    name: "deploy",
    input: { version: "1.2" },
    status: "requires_action",
    awaits: { kind: "approval", quorum: 1, answers: [], expiresAt: at, ...awaits },
  });
const inputHash = waiting({}).awaits?.inputHash ?? "";

const say = (call: ToolCall, who: typeof ann, answer: ToolAnswer, left?: typeof ann): Verdict | undefined => {
  if (!who) throw new Error("nobody says it");
  return judge(call, { ...who, at, answer, isCounted: ({ entityId }) => entityId !== left?.entityId });
};
const approve = (approved = true, note?: string): ToolAnswer => ({
  result: { approved, ...(approved && { inputHash }), ...(note === undefined ? {} : { note }) },
});

test("approvals are counted up to the quorum, each person's once, and then the call runs", () => {
  const first = say(waiting({ quorum: 2 }), ann, approve());
  expect(first).toMatchObject({ outcome: null, call: { status: "requires_action" } });
  const half = first?.call ?? waiting({});
  expect(say(half, ann, approve())).toBeUndefined();
  expect(refusal(() => say(half, ann, approve(true, "hm"))).code).toBe("conflict");
  expect(refusal(() => say(half, ann, approve(false))).code).toBe("conflict");
  const second = say(half, bob, approve(true, "go"));
  expect(second).toMatchObject({ outcome: "approved", call: { status: "running" } });
  const done = second?.call ?? half;
  expect(done.awaits?.answers).toEqual([
    { ...ann, approved: true, inputHash, at },
    { ...bob, approved: true, inputHash, note: "go", at },
  ]);
  expect(say(done, bob, approve(true, "go"))).toBeUndefined();
  expect(refusal(() => say(done, cyd, approve()))).toMatchObject({ code: "conflict" });
  expect(toldOutcome(7, done, "approved")).toEqual({
    seq: 7,
    toolCallId: id,
    outcome: "approved",
    inputHash,
    note: "go",
    by: [
      { id: ann?.entityId, name: "Ann" },
      { id: bob?.entityId, name: "Bob", note: "go" },
    ],
  });
});

test("[C2] who approved, left and came back decides it by approving again", () => {
  const half = say(waiting({ quorum: 2 }), ann, approve())?.call ?? waiting({});
  const both = say(half, bob, approve(), ann);
  expect(both).toMatchObject({ outcome: null, call: { status: "requires_action" } });
  const again = say(both?.call ?? half, ann, approve());
  expect(again).toMatchObject({ outcome: "approved", call: { status: "running", awaits: { answers: [{}, {}] } } });
});

test("[C2] who had left by the decision is not told as one who approved", () => {
  const half = say(waiting({ quorum: 2 }), ann, approve())?.call ?? waiting({});
  const both = say(half, bob, approve(), ann)?.call ?? half;
  const done = say(both, cyd, approve(), ann);
  expect(done?.outcome).toBe("approved");
  expect(toldOutcome(9, done?.call ?? both, "approved").by).toEqual([
    { id: bob?.entityId, name: "Bob" },
    { id: cyd?.entityId, name: "Cyd" },
  ]);
});

test("one rejection rejects, however many have approved", () => {
  const half = say(waiting({ quorum: 3 }), ann, approve())?.call ?? waiting({});
  const rejected = say(half, bob, approve(false, "not on a Friday"));
  expect(rejected).toMatchObject({
    outcome: "rejected",
    call: { status: "error", error: { code: "approval_rejected" } },
  });
  const told = toldOutcome(9, rejected?.call ?? half, "rejected");
  expect(told).toMatchObject({ note: "not on a Friday", by: [{ name: "Bob" }] });
  expect(refusal(() => say(rejected?.call ?? half, cyd, approve())).code).toBe("conflict");
});

test("[S4] what is no approval is told so, and changes nothing", () => {
  const bad: ToolAnswer[] = [
    { result: "yes" },
    { result: { approved: "yes" } },
    { result: { approved: true, inputHash, extra: 1 } },
    { result: { approved: true, inputHash, note: "x".repeat(1001) } },
    { result: { approved: true, inputHash: "x" } },
    { error: { message: "no idea" } },
  ];
  for (const answer of bad) {
    const refused = refusal(() => say(waiting({}), ann, answer));
    expect(refused.code).toBe("answer_invalid");
    expect(refused.issues?.[0]?.path).toMatch(/^result/);
  }
});

test("[C2] an approval without the hash of what was shown, or with another's, does not count", () => {
  expect(refusal(() => say(waiting({}), ann, { result: { approved: true } }))).toMatchObject({
    code: "answer_invalid",
    issues: [{ path: "result.inputHash", message: expect.stringContaining("awaits.shown") }],
  });
  const other = { result: { approved: true, inputHash: "0".repeat(64) } };
  expect(refusal(() => say(waiting({}), ann, other)).code).toBe("approval_changed");
  // To say no, nobody need have read it all.
  expect(say(waiting({}), ann, { result: { approved: false } })).toMatchObject({ outcome: "rejected" });
});

test("[C2] a call that is shown with other arguments asks everybody anew", () => {
  const { input, awaits } = waiting({ quorum: 2 });
  const said = {
    ...{ workspaceId: ids.mint("wsp"), agentId: nova, runId: "run", messageId: "msg", toolCallId: id, name: "deploy" },
    ...{
      input,
      status: "requires_action" as const,
      root: { id: "r", kind: "agent" as const },
      target: "POST https://x",
    },
    awaits: { kind: "approval" as const, quorum: 2, expiresAt: awaits?.expiresAt ?? "" },
  };
  const half = say(begun(said), ann, approve())?.call ?? waiting({});
  expect(advanced(half, said)).toBe(half);
  const changed = advanced(half, { ...said, input: { version: "6.6.6" } });
  expect(changed.awaits).toMatchObject({ answers: [], shown: [{}, {}, { path: "input.version", text: "6.6.6" }] });
  expect(refusal(() => say(changed, bob, approve())).code).toBe("approval_changed");
});

test("of answers the first that is valid wins; the same again is the same, another a conflict", () => {
  const call = waiting({
    kind: "answer",
    schema: { type: "object", properties: { color: { enum: ["red", "blue"] } }, required: ["color"] },
  });
  expect(refusal(() => say(call, ann, { result: { color: "green" } }))).toMatchObject({
    code: "answer_invalid",
    issues: [{ path: "result.color" }],
  });
  const won = say(call, bob, { result: { color: "red", why: [1, 2] } });
  expect(won).toMatchObject({ outcome: "answered", call: { status: "complete", output: { color: "red" } } });
  const done = won?.call ?? call;
  expect(say(done, bob, { result: { why: [1, 2], color: "red" } })).toBeUndefined();
  expect(refusal(() => say(done, bob, { result: { color: "blue" } })).code).toBe("conflict");
  expect(refusal(() => say(done, ann, { result: { color: "red", why: [1, 2] } })).message).toContain("Bob");
  expect(toldOutcome(3, done, "answered")).toMatchObject({
    output: { color: "red", why: [1, 2] },
    by: [{ name: "Bob" }],
  });
});

test("a person may say that there is no answer, and why", () => {
  const failed = say(waiting({ kind: "answer" }), ann, { error: { message: "The printer is out of paper" } });
  expect(failed).toMatchObject({ outcome: "failed", call: { status: "error", error: { code: "tool_failed" } } });
  const done = failed?.call ?? waiting({});
  expect(say(done, ann, { error: { message: "The printer is out of paper" } })).toBeUndefined();
  expect(toldOutcome(3, done, "failed")).toMatchObject({ note: "The printer is out of paper", by: [{ name: "Ann" }] });
});

test("nobody answers what waits no more, or never did", () => {
  const call = waiting({});
  expect(refusal(() => say({ ...call, status: "expired" }, ann, approve())).code).toBe("gone");
  expect(refusal(() => say({ ...call, status: "canceled" }, ann, approve())).code).toBe("gone");
  const { awaits: _, ...running } = call;
  expect(refusal(() => say({ ...running, status: "running" }, ann, approve())).code).toBe("conflict");
});
