import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ruleLine } from "../../../src/agent/context/instructions.ts";
import {
  brokenRule,
  endsLoop,
  goesOn,
  missingBeforeExit,
  type PastCall,
  ruleIssues,
} from "../../../src/agent/tools/rules.ts";
import type { ToolRule } from "../../../src/protocol/tool.ts";

const past = (...calls: string[]): PastCall[] =>
  calls.map((call) => {
    const [toolName = "", state = "succeeded"] = call.split(":");
    return { toolName, state: state as PastCall["state"] };
  });

const start: ToolRule = { tool: "context", rule: "start_constraint" };
const required: ToolRule = { tool: "log", rule: "required_before_exit" };
const ends: ToolRule = { tool: "send", rule: "exit_loop" };
const continues: ToolRule = { tool: "search", rule: "continue_loop" };
const prior: ToolRule = { tool: "pay", rule: "requires_prior", tools: ["check", "quote"] };
const most: ToolRule = { tool: "api", rule: "max_calls", count: 2 };
const all = [start, required, ends, continues, prior, most];

test("each rule is said in the seed's words", () => {
  expect(all.map(ruleLine)).toEqual([
    "Call `context` first before any other tools",
    "Call `log` before ending the conversation",
    "The conversation will end after calling `send`",
    "The conversation will be continued after calling `search`",
    "Call `pay` only after calling `check`, `quote`",
    "Call `api` at most 2 times",
  ]);
});

describe("brokenRule", () => {
  test.each<[string, ToolRule[], string, string[], ToolRule | undefined]>([
    ["another tool first", [start], "api", [], start],
    ["the first tool first", [start], "context", [], undefined],
    ["another tool after the first", [start], "api", ["context"], undefined],
    ["another tool after the first failed", [start], "api", ["context:failed"], undefined],
    ["another tool after the first was refused", [start], "api", ["context:refused"], start],
    ["one of two first tools", [start, { ...start, tool: "log" }], "log", [], undefined],
    ["another tool after one of two", [start, { ...start, tool: "log" }], "api", ["log"], start],
    ["a call without those before it", [prior], "pay", ["check"], prior],
    ["a call after those before it", [prior], "pay", ["quote", "check"], undefined],
    ["a call after one that failed", [prior], "pay", ["quote", "check:failed"], prior],
    ["a call after one that is under way", [prior], "pay", ["quote", "check:open"], prior],
    ["a last call", [most], "api", ["api"], undefined],
    ["a call too many", [most], "api", ["api", "api:failed"], most],
    ["a call too many beside one under way", [most], "api", ["api", "api:open"], most],
    ["a call where others were refused", [most], "api", ["api:refused", "api:refused"], undefined],
    ["a call of another tool", [most, prior, ends, continues, required], "other", ["api", "api", "api"], undefined],
  ])("%s", (_, rules, toolName, calls, broken) => {
    expect(brokenRule(rules, toolName, past(...calls))).toBe(broken);
  });
});

test.each<[string[], boolean, boolean]>([
  [["send"], true, false],
  [["other", "send", "other"], true, false],
  [["send:failed"], false, false],
  [["send:refused"], false, false],
  [["search"], false, true],
  [["send", "search"], false, true],
  [["send", "search:failed"], true, false],
  [[], false, false],
])("calls %j end the loop: %s, and say that it goes on: %s", (calls, end, on) => {
  expect([endsLoop(all, past(...calls)), goesOn(all, past(...calls))]).toEqual([end, on]);
});

test("what is missing before an exit is every required call that was not executed", () => {
  expect(missingBeforeExit(all, past("send"))).toEqual([required]);
  expect(missingBeforeExit(all, past("log:refused"))).toEqual([required]);
  expect(missingBeforeExit(all, past("log:failed"))).toEqual([]);
});

test("[S4] rules that cannot be kept together are refused where they stand", () => {
  expect(ruleIssues(all)).toEqual([]);
  expect(ruleIssues([start, start, ends, { ...ends, rule: "continue_loop" }]).map(({ path }) => path)).toEqual([
    "1",
    "2",
  ]);
  const circle: ToolRule[] = [
    { tool: "a", rule: "requires_prior", tools: ["b"] },
    { tool: "b", rule: "requires_prior", tools: ["c"] },
    { tool: "c", rule: "requires_prior", tools: ["x", "a"] },
    { tool: "a", rule: "start_constraint" },
  ];
  expect(ruleIssues(circle).map(({ path }) => path)).toEqual(["0", "0", "1", "2"]);
});

test("[R3] whatever a model calls, in any order, no executed call breaks a rule", () => {
  const name = fc.constantFrom("context", "log", "send", "search", "pay", "check", "quote", "api");
  fc.assert(
    fc.property(fc.subarray(all), fc.array(fc.tuple(name, fc.boolean()), { maxLength: 30 }), (rules, calls) => {
      const done: PastCall[] = [];
      for (const [toolName, fails] of calls) {
        const refused = brokenRule(rules, toolName, done) !== undefined;
        done.push({ toolName, state: refused ? "refused" : fails ? "failed" : "succeeded" });
      }
      const executed = done.filter(({ state }) => state !== "refused");
      if (rules.includes(start)) expect(executed[0]?.toolName ?? "context").toBe("context");
      if (rules.includes(most))
        expect(executed.filter(({ toolName }) => toolName === "api").length).toBeLessThanOrEqual(2);
      if (!rules.includes(prior)) return;
      for (const [index, { toolName }] of executed.entries()) {
        if (toolName !== "pay") continue;
        const before = executed.slice(0, index).filter(({ state }) => state === "succeeded");
        expect(before.map((call) => call.toolName)).toEqual(expect.arrayContaining(["check", "quote"]));
      }
    }),
    { numRuns: 1000 },
  );
});
