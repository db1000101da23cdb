import { expect, onTestFinished, test } from "vitest";
import { apiError, call, installModel, refusal, scriptedModel, step, text } from "../support/scripted-model.ts";
import { type AgentSettings, openScene, scripted, userTexts } from "./fixture.ts";

/** What is left, after a compaction, of cycles that ended without a word to themselves. */
const small = { maxTokens: 5000, reservedResponseTokens: 500, minRecentCycles: 1 };
const long = " and so on".repeat(150);

/** Asks so often that the oldest cycles are compacted. Answers the lines that stand for them. */
const lived = async (settings: Partial<AgentSettings>, wait = false) => {
  const { space, ask } = await openScene({ messaging: "threaded", ...settings });
  const model = scriptedModel((_, index) =>
    step(
      call("enter_space", { spaceId: space.id }),
      call("set_memories", { memories: [{ key: "count", value: String(index + 1) }] }),
      call("send_message", { text: `Answer ${index + 1}`, ...(wait ? { wait } : {}) }),
    ),
  );
  const summariser = scriptedModel(() => refusal(apiError(500)));
  onTestFinished(installModel(({ name }) => (name === "summariser" ? summariser : model)));
  const rounds = 14;
  for (let round = 1; round <= rounds; round += 1) {
    const runs = await ask(`Question ${round}${long}`, round);
    expect(runs.at(-1)).toMatchObject({ status: "completed", outcome: "answered" });
  }
  const input = userTexts(model.calls.at(-1)).find((words) => words.startsWith("EARLIER CYCLES"));
  return (input ?? "").split("\n").slice(1);
};

const facts = (ending: string): RegExp =>
  new RegExp(
    String.raw`^  \| - "Husam" (?:asked|answered) "Question \d+ and so on.*…" in "Alpha"; called set_memories\(.*\) → .*; sent "Answer \d+" to "Alpha" \(msg_\w+\)${ending}$`,
  );

const endsLoop: AgentSettings["toolRules"] = [{ tool: "send_message", rule: "exit_loop" }];

test("[K2] cycles that a tool rule ended after speaking are summarised from their journal", async () => {
  const lines = await lived({ context: small, toolRules: endsLoop });
  expect(lines.length).toBeGreaterThan(1);
  for (const line of lines) expect(line).toMatch(facts(""));
});

test("[K2] cycles that a wait ended are summarised from their journal", async () => {
  const lines = await lived({ context: small }, true);
  expect(lines.length).toBeGreaterThan(1);
  for (const line of lines) expect(line).toMatch(facts(', waiting for "Husam"'));
});

test("[K2] until a model has summarised such cycles, their facts stand for them", async () => {
  const model = { provider: "rehearsal", name: "summariser", deltasPerSecond: 0 } as const;
  const compaction = { strategy: "recursive_summarization", model } as const;
  const context = { ...small, maxTokens: 4000, compaction };
  const lines = await lived({ context, toolRules: endsLoop });
  expect(lines.length).toBeGreaterThan(0);
  for (const line of lines) expect(line).toMatch(facts(""));
});

test("[K2] a kept cycle that called skip too late, and nothing else, is told as well", async () => {
  const { space, ask } = await openScene({ context: small });
  const model = scripted((_, index) =>
    index % 3 === 0
      ? step(call("enter_space", { spaceId: space.id }))
      : index % 3 === 1
        ? step(call("skip", { reason: "not for me" }))
        : step(text("")),
  );
  for (let round = 1; round <= 12; round += 1) await ask(`Question ${round}${long}`, round);
  const input = userTexts(model.calls.at(-1)).find((words) => words.startsWith("EARLIER CYCLES")) ?? "";
  expect(input).toMatch(
    /\n {2}\| - "Husam" asked "Question 1 .*" in "Alpha"; called skip\(\{"reason":"not for me"\}\) → \{"success":false,"error":\{"code":"skip_too_late"/,
  );
});
