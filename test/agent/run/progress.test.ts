import { expect, test } from "vitest";
import { resolveLimits } from "../../../src/agent/context/limits.ts";
import type { AssistantMeta, CallRequest, JournalContent, JournalMeta } from "../../../src/agent/records.ts";
import { activeSpaceOf, invalidStepsInARow, progressOf, tokensAdded } from "../../../src/agent/run/progress.ts";
import { ContextConfig } from "../../../src/protocol/context-config.ts";

type Row = {
  kind: "inbox" | "preview" | "assistant" | "call" | "result";
  step: number;
  content: JournalContent;
  meta: JournalMeta | null;
};

const callOf = (callId: string, toolName: string, extra: Partial<CallRequest> = {}): CallRequest => ({
  callId,
  index: 0,
  toolName,
  input: {},
  ...extra,
});

const inbox: Row = {
  kind: "inbox",
  step: 0,
  content: { role: "user", content: "INBOX" },
  meta: { kind: "inbox", lines: [] },
};

const assistant = (step: number, calls: CallRequest[], usage = { inputTokens: 100, outputTokens: 10 }): Row => {
  const meta: AssistantMeta = {
    kind: "assistant",
    text: "",
    calls,
    usage: { ...usage, estimated: false },
    estimatedInput: 100,
    firstCycle: 1,
    windowId: 1,
    modelId: "m",
    input: {
      sections: [],
      dropped: [],
      tokens: 100,
      limits: resolveLimits(ContextConfig.parse({}), { name: "m", window: null }, undefined),
    },
    durationMs: 1,
    finishReason: "stop",
  };
  return { kind: "assistant", step, content: { role: "assistant", content: "" }, meta };
};

const started = (step: number, callId: string): Row => ({
  kind: "call",
  step,
  content: { callId, toolName: "x" },
  meta: null,
});

const result = (step: number, callId: string, activeSpaceId?: string | null): Row => ({
  kind: "result",
  step,
  content: { role: "tool", content: [] },
  meta: {
    kind: "result",
    callId,
    toolName: "x",
    error: false,
    ...(activeSpaceId === undefined ? {} : { activeSpaceId }),
  },
});

const nobody = (): boolean => false;

test("[R3] a fresh run generates its first step", () => {
  expect(progressOf([inbox], nobody)).toEqual({ kind: "generate", step: 0 });
});

test("[R3] a journaled step is not generated again: its open calls are executed, in order", () => {
  const calls = [callOf("tc_a", "enter_space"), callOf("tc_b", "send_message")];
  const rows = [inbox, assistant(0, calls)];
  expect(progressOf(rows, nobody)).toMatchObject({ kind: "execute", call: { callId: "tc_a" }, started: false });
  expect(progressOf([...rows, started(0, "tc_a")], nobody)).toMatchObject({ call: { callId: "tc_a" }, started: true });
  const half = [...rows, started(0, "tc_a"), result(0, "tc_a")];
  expect(progressOf(half, nobody)).toMatchObject({ call: { callId: "tc_b" }, started: false });
  expect(progressOf([...half, result(0, "tc_b")], nobody)).toEqual({ kind: "generate", step: 1 });
});

test("[R3] calls to people and servers are awaited together, once their step's others are done", () => {
  const calls = [callOf("tc_a", "approve"), callOf("tc_b", "send_message"), callOf("tc_c", "ask")];
  const awaited =
    (...ids: string[]) =>
    (callId: string) =>
      ids.includes(callId);
  const rows = [inbox, assistant(0, calls), started(0, "tc_a")];
  expect(progressOf(rows, awaited("tc_a"))).toMatchObject({
    kind: "execute",
    call: { callId: "tc_b" },
    started: false,
  });
  const asked = [...rows, started(0, "tc_b"), result(0, "tc_b"), started(0, "tc_c")];
  expect(progressOf(asked, awaited("tc_a", "tc_c"))).toEqual({ kind: "await" });
  expect(progressOf(asked, awaited("tc_a"))).toMatchObject({
    kind: "execute",
    call: { callId: "tc_c" },
    started: true,
  });
  const half = [...asked, result(0, "tc_c")];
  expect(progressOf(half, awaited("tc_a"))).toEqual({ kind: "await" });
  expect(progressOf([...half, result(0, "tc_a")], awaited())).toEqual({ kind: "generate", step: 1 });
});

test("a step without calls ends the run", () => {
  expect(progressOf([inbox, assistant(0, [])], nobody)).toEqual({ kind: "done" });
});

test("skip counts only as the first step's only call", () => {
  const skip = callOf("tc_a", "skip", { input: { reason: "not for me" } });
  expect(progressOf([inbox, assistant(0, [skip])], nobody)).toEqual({ kind: "skip", reason: "not for me" });
  expect(progressOf([inbox, assistant(0, [skip, callOf("tc_b", "send_message")])], nobody).kind).toBe("execute");
  const later = [inbox, assistant(0, [callOf("tc_z", "get_memories")]), result(0, "tc_z"), assistant(1, [skip])];
  expect(progressOf(later, nobody).kind).toBe("execute");
});

test("the active space follows from the results of the calls", () => {
  expect(activeSpaceOf("spc_start", [inbox])).toBe("spc_start");
  expect(activeSpaceOf("spc_start", [inbox, result(0, "a", "spc_next"), result(0, "b")])).toBe("spc_next");
  expect(activeSpaceOf("spc_start", [inbox, result(0, "a", "spc_next"), result(0, "b", null)])).toBe(null);
});

test("[R4] steps whose every call is invalid are counted until one is valid", () => {
  const bad = [callOf("tc_a", "nope", { invalid: { code: "tool_unknown", message: "" } })];
  expect(invalidStepsInARow([inbox, assistant(0, bad), assistant(1, bad)])).toBe(2);
  expect(invalidStepsInARow([inbox, assistant(0, bad), assistant(1, [callOf("tc_b", "get_memories")])])).toBe(0);
  expect(invalidStepsInARow([inbox])).toBe(0);
});

test("[B3] a run's tokens are its output and the growth of its input", () => {
  const rows = [
    inbox,
    assistant(0, [], { inputTokens: 1000, outputTokens: 10 }),
    assistant(1, [], { inputTokens: 1500, outputTokens: 20 }),
  ];
  expect(tokensAdded(rows)).toBe(530);
});
