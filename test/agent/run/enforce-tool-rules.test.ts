import { describe, expect, test } from "vitest";
import { resolveLimits } from "../../../src/agent/context/limits.ts";
import type { JournalContent, JournalMeta } from "../../../src/agent/records.ts";
import { enforceToolRules, pastCalls } from "../../../src/agent/run/enforce-tool-rules.ts";
import { progressOf } from "../../../src/agent/run/progress.ts";
import { ContextConfig } from "../../../src/protocol/context-config.ts";
import type { ToolRule } from "../../../src/protocol/tool.ts";

type Row = {
  kind: "inbox" | "preview" | "assistant" | "call" | "result";
  step: number;
  content: JournalContent;
  meta: JournalMeta | null;
};
type Outcome = "open" | "succeeded" | "failed" | "refused" | "waits";

const inbox: Row = {
  kind: "inbox",
  step: 0,
  content: { role: "user", content: "" },
  meta: { kind: "inbox", lines: [] },
};
const reminder = (step: number): Row => ({
  kind: "preview",
  step,
  content: { role: "user", content: "REMINDER" },
  meta: { kind: "reminder" },
});

/** A step with its calls (`tool:outcome`), as the journal holds it. */
const step = (index: number, ...made: string[]): Row[] => {
  const calls = made.map((each, at) => {
    const [toolName = "", outcome = "succeeded"] = each.split(":");
    return { callId: `tc_${index}_${at}`, index: at, toolName, input: {}, outcome: outcome as Outcome };
  });
  const meta: JournalMeta = {
    kind: "assistant",
    text: "",
    calls: calls.map(({ outcome: _, ...call }) => call),
    usage: { inputTokens: 1, outputTokens: 1, estimated: false },
    estimatedInput: 1,
    firstCycle: 1,
    input: {
      sections: [],
      dropped: [],
      tokens: 100,
      limits: resolveLimits(ContextConfig.parse({}), { name: "m", window: null }, undefined),
    },
    windowId: 1,
    modelId: "m",
    durationMs: 1,
    finishReason: "stop",
  };
  return [
    { kind: "assistant", step: index, content: { role: "assistant", content: "" }, meta },
    ...calls.flatMap(({ callId, toolName, outcome }): Row[] => [
      ...(outcome === "refused"
        ? []
        : [{ kind: "call" as const, step: index, content: { callId, toolName }, meta: null }]),
      ...(outcome === "open"
        ? []
        : [
            {
              kind: "result" as const,
              step: index,
              content: { role: "tool" as const, content: [] },
              meta: {
                kind: "result" as const,
                callId,
                toolName,
                error: outcome === "failed" || outcome === "refused",
                ...(outcome === "refused" ? { refused: true as const } : {}),
                ...(outcome === "waits" ? { waits: true as const } : {}),
              },
            },
          ]),
    ]),
  ];
};

const required: ToolRule = { tool: "log", rule: "required_before_exit" };
const ends: ToolRule = { tool: "send", rule: "exit_loop" };
const on: ToolRule = { tool: "send", rule: "continue_loop" };

const next = (rules: ToolRule[], rows: Row[], continuity: "consciousness" | "timeline" = "consciousness") =>
  enforceToolRules(
    progressOf([inbox, ...rows], () => false),
    [inbox, ...rows],
    rules,
    { waitsForAnswers: continuity === "timeline" },
  );

const remind = {
  kind: "remind",
  text: "REMINDER: Call `log` before ending the conversation. Do that now; the run cannot end before.",
};

describe.each(["consciousness", "timeline"] as const)("%s", (continuity) => {
  test("without rules a run goes where its journal says", () => {
    expect(next([], step(0, "send"), continuity)).toEqual({ kind: "generate", step: 1 });
    expect(next([], step(0), continuity)).toEqual({ kind: "done" });
  });

  test("a call that ends the loop ends the run, once every call of its step has its result", () => {
    expect(next([ends], step(0, "send", "other:open"), continuity)).toMatchObject({ kind: "execute" });
    expect(next([ends], step(0, "send", "other"), continuity)).toEqual({ kind: "done" });
    expect(next([ends], step(0, "send:failed"), continuity)).toEqual({ kind: "generate", step: 1 });
    expect(next([ends], [...step(0, "send"), ...step(1, "other")], continuity)).toEqual({ kind: "generate", step: 2 });
  });

  test("an exit without a required call is answered once, then breaks the run", () => {
    const exits = step(0);
    expect(next([required], exits, continuity)).toEqual({ ...remind, step: 1 });
    const reminded = [...exits, reminder(1)];
    expect(next([required], reminded, continuity)).toEqual({ kind: "generate", step: 1 });
    expect(next([required], [...reminded, ...step(1)], continuity)).toMatchObject({
      kind: "broken",
      message: expect.stringContaining("Call `log` before ending"),
    });
    const kept = [...reminded, ...step(1, "log")];
    expect(next([required], kept, continuity)).toEqual({ kind: "generate", step: 2 });
    expect(next([required], [...kept, ...step(2)], continuity)).toEqual({ kind: "done" });
    const late = [...reminded, ...step(1, "other"), ...step(2)];
    expect(next([required], late, continuity)).toMatchObject({ kind: "broken" });
  });

  test("a call that ends the loop is an exit too", () => {
    expect(next([ends, required], step(0, "send"), continuity)).toEqual({ ...remind, step: 1 });
    expect(next([ends, required], step(0, "send", "log"), continuity)).toEqual({ kind: "done" });
  });
});

test("where a cycle would end by its wait, rules have a word; a timeline run waits", () => {
  const waits = step(0, "send:waits");
  expect(next([on], waits)).toEqual({ kind: "generate", step: 1 });
  expect(next([required], waits)).toEqual({ ...remind, step: 1 });
  expect(next([{ tool: "x", rule: "max_calls", count: 1 }], waits)).toEqual({ kind: "done" });
  expect(next([on, required], waits, "timeline")).toEqual({ kind: "wait", next: 1 });
});

test("silence is no exit", () => {
  expect(next([required], step(0, "skip:open"))).toMatchObject({ kind: "skip" });
});

test("[R3] what was called follows from the journal alone", () => {
  expect(pastCalls(step(0, "a", "b:failed", "c:refused", "d:open"))).toEqual([
    { toolName: "a", state: "succeeded" },
    { toolName: "b", state: "failed" },
    { toolName: "c", state: "refused" },
    { toolName: "d", state: "open" },
  ]);
});
