import { describe, expect, test } from "vitest";
import { type Deciding, nextOf, pastCalls } from "../../../src/agent/run/next-step.ts";
import { activeSpaceOf, invalidStepsInARow, tokensAdded } from "../../../src/agent/run/run-rows.ts";
import type { ToolRule } from "../../../src/protocol/tool.ts";
import { assistant, callOf, inbox, journaled, type Row, reminder, result, started, viewOf } from "./journal-rows.ts";

const limits = { maxSteps: 20, maxTokensPerRun: 100_000 };

const next = (rows: Row[], deciding: Partial<Deciding> = {}) =>
  nextOf(viewOf([inbox, ...rows]), { isAwaited: () => false, rules: [], waitsForAnswers: false, limits, ...deciding });

const awaited = (...ids: string[]) => ({ isAwaited: (callId: string) => ids.includes(callId) });

const ended = (ending: object) => ({ kind: "end", ending });
const done = ended({ kind: "completed" });
const failed = (code: string, message = "") =>
  ended({ kind: "failed", error: { code, message: expect.stringContaining(message) }, events: expect.any(String) });

describe("the next step", () => {
  test("[R3] a fresh run generates its first step", () => {
    expect(next([])).toEqual({ kind: "generate", step: 0 });
  });

  test("[R3] a journaled step is not generated again: its open calls are executed, in order", () => {
    const rows = [assistant(0, [callOf("tc_a", "enter_space"), callOf("tc_b", "send_message")])];
    const [unbegun, begun] = [undefined, expect.any(Number)];
    expect(next(rows)).toMatchObject({ kind: "execute", call: { callId: "tc_a" }, begunAt: unbegun });
    expect(next([...rows, started(0, "tc_a")])).toMatchObject({ call: { callId: "tc_a" }, begunAt: begun });
    const half = [...rows, started(0, "tc_a"), result(0, "tc_a")];
    expect(next(half)).toMatchObject({ call: { callId: "tc_b" }, begunAt: unbegun });
    expect(next([...half, result(0, "tc_b")])).toEqual({ kind: "generate", step: 1 });
  });

  test("[R3] calls to people and servers are awaited together, once their step's others are done", () => {
    const calls = [callOf("tc_a", "approve"), callOf("tc_b", "send_message"), callOf("tc_c", "ask")];
    const rows = [assistant(0, calls), started(0, "tc_a")];
    expect(next(rows, awaited("tc_a"))).toMatchObject({ kind: "execute", call: { callId: "tc_b" } });
    const asked = [...rows, started(0, "tc_b"), result(0, "tc_b"), started(0, "tc_c")];
    expect(next(asked, awaited("tc_a", "tc_c"))).toEqual({ kind: "await" });
    expect(next(asked, awaited("tc_a"))).toMatchObject({ kind: "execute", call: { callId: "tc_c" } });
    const half = [...asked, result(0, "tc_c")];
    expect(next(half, awaited("tc_a"))).toEqual({ kind: "await" });
    expect(next([...half, result(0, "tc_a")])).toEqual({ kind: "generate", step: 1 });
  });

  test("a step without calls ends the run", () => {
    expect(next([assistant(0, [])])).toEqual(done);
  });

  test("skip counts only as the first step's only call", () => {
    const skip = callOf("tc_a", "skip", { input: { reason: "not for me" } });
    expect(next([assistant(0, [skip])])).toEqual(ended({ kind: "skipped", reason: "not for me" }));
    const halved = callOf("tc_a", "skip", { input: { reason: "not for \ud83d" } });
    expect(next([assistant(0, [halved])])).toEqual(ended({ kind: "skipped", reason: "not for \ufffd" }));
    expect(next([assistant(0, [skip, callOf("tc_b", "send_message")])]).kind).toBe("execute");
    const later = [assistant(0, [callOf("tc_z", "get_memories")]), result(0, "tc_z"), assistant(1, [skip])];
    expect(next(later).kind).toBe("execute");
  });

  test("[B3] a run over one of its limits generates no step more", () => {
    const rows = [assistant(0, [callOf("tc_a", "get_memories")]), result(0, "tc_a")];
    expect(next(rows, { limits: { ...limits, maxSteps: 1 } })).toEqual(failed("step_limit", "maxSteps (1)"));
    expect(next(rows, { limits: { ...limits, maxTokensPerRun: 9 } })).toEqual(failed("token_limit", "(9)"));
    expect(next(rows.slice(0, 1), { limits: { ...limits, maxSteps: 1 } }).kind).toBe("execute");
  });
});

describe("what a run's rows tell", () => {
  test("the active space follows from the results of the calls", () => {
    const activeSpace = (...rows: Row[]) => activeSpaceOf("spc_start", journaled([inbox, ...rows]));
    const moved = result(0, "a", { activeSpaceId: "spc_next" });
    expect(activeSpace()).toBe("spc_start");
    expect(activeSpace(moved, result(0, "b"))).toBe("spc_next");
    expect(activeSpace(moved, result(0, "b", { activeSpaceId: null }))).toBe(null);
  });

  test("[R4] steps whose every call is invalid are counted until one is valid", () => {
    const bad = [callOf("tc_a", "nope", { invalid: { code: "tool_unknown", message: "" } })];
    const count = (...rows: Row[]) => invalidStepsInARow(viewOf([inbox, ...rows]));
    expect(count(assistant(0, bad), assistant(1, bad))).toBe(2);
    expect(count(assistant(0, bad), assistant(1, [callOf("tc_b", "get_memories")]))).toBe(0);
    expect(count()).toBe(0);
  });

  test("[B3] a run's tokens are its output and the growth of its input", () => {
    const first = assistant(0, [], { inputTokens: 1000, outputTokens: 10 });
    const second = assistant(1, [], { inputTokens: 1500, outputTokens: 20 });
    expect(tokensAdded(viewOf([inbox, first, second]))).toBe(530);
  });
});

/** A step with its calls (`tool:outcome`). */
const step = (index: number, ...made: string[]): Row[] => {
  const calls = made.map((each, at) => {
    const [toolName = "", outcome = "succeeded"] = each.split(":");
    return { callId: `tc_${index}_${at}`, toolName, outcome };
  });
  return [
    assistant(
      index,
      calls.map(({ callId, toolName }) => callOf(callId, toolName)),
    ),
    ...calls.flatMap(({ callId, toolName, outcome }) => {
      const begun = outcome === "refused" ? [] : [started(index, callId, toolName)];
      if (outcome === "open") return begun;
      const facts = { toolName, error: outcome === "failed" || outcome === "refused" };
      const more = outcome === "waits" || outcome === "refused" ? { [outcome]: true } : {};
      return [...begun, result(index, callId, { ...facts, ...more })];
    }),
  ];
};

const required: ToolRule = { tool: "log", rule: "required_before_exit" };
const ends: ToolRule = { tool: "send", rule: "exit_loop" };
const on: ToolRule = { tool: "send", rule: "continue_loop" };

const remind = {
  kind: "remind",
  text: "REMINDER: Call `log` before ending the conversation. Do that now; the run cannot end before.",
};

describe.each([
  ["consciousness", false],
  ["timeline", true],
])("tool rules in a %s", (_, waitsForAnswers) => {
  const ruled = (rules: ToolRule[], rows: Row[]) => next(rows, { rules, waitsForAnswers });

  test("without rules a run goes where its journal says", () => {
    expect(ruled([], step(0, "send"))).toEqual({ kind: "generate", step: 1 });
    expect(ruled([], step(0))).toEqual(done);
  });

  test("a call that ends the loop ends the run, once every call of its step has its result", () => {
    expect(ruled([ends], step(0, "send", "other:open"))).toMatchObject({ kind: "execute" });
    expect(ruled([ends], step(0, "send", "other"))).toEqual(done);
    expect(ruled([ends], step(0, "send:failed"))).toEqual({ kind: "generate", step: 1 });
    expect(ruled([ends], [...step(0, "send"), ...step(1, "other")])).toEqual({ kind: "generate", step: 2 });
  });

  test("an exit without a required call is answered once, then breaks the run", () => {
    const exits = step(0);
    expect(ruled([required], exits)).toEqual({ ...remind, step: 1 });
    const reminded = [...exits, reminder(1)];
    expect(ruled([required], reminded)).toEqual({ kind: "generate", step: 1 });
    const broken = failed("tool_rule_broken", "Call `log` before ending");
    expect(ruled([required], [...reminded, ...step(1)])).toEqual(broken);
    const kept = [...reminded, ...step(1, "log")];
    expect(ruled([required], kept)).toEqual({ kind: "generate", step: 2 });
    expect(ruled([required], [...kept, ...step(2)])).toEqual(done);
    expect(ruled([required], [...reminded, ...step(1, "other"), ...step(2)])).toEqual(broken);
  });

  test("a call that ends the loop is an exit too", () => {
    expect(ruled([ends, required], step(0, "send"))).toEqual({ ...remind, step: 1 });
    expect(ruled([ends, required], step(0, "send", "log"))).toEqual(done);
  });
});

test("where a cycle would end by its wait, rules have a word; a timeline run waits", () => {
  const waits = step(0, "send:waits");
  expect(next(waits)).toEqual(done);
  expect(next(waits, { rules: [on] })).toEqual({ kind: "generate", step: 1 });
  expect(next(waits, { rules: [required] })).toEqual({ ...remind, step: 1 });
  expect(next(waits, { rules: [{ tool: "x", rule: "max_calls", count: 1 }] })).toEqual(done);
  expect(next(waits, { rules: [on, required], waitsForAnswers: true })).toEqual({ kind: "wait", step: 1 });
});

test("silence is no exit", () => {
  expect(next(step(0, "skip:open"), { rules: [required] })).toMatchObject(ended({ kind: "skipped" }));
});

test("[R3] what was called follows from the journal alone", () => {
  expect(pastCalls(viewOf(step(0, "a", "b:failed", "c:refused", "d:open")).calls)).toEqual([
    { toolName: "a", state: "succeeded" },
    { toolName: "b", state: "failed" },
    { toolName: "c", state: "refused" },
    { toolName: "d", state: "open" },
  ]);
});
