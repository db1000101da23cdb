import { env } from "cloudflare:workers";
import { describe, expect, onTestFinished, test } from "vitest";
import { maxTextBytes } from "../../src/protocol/text.ts";
import { unwrap } from "../../src/shared/errors.ts";
import {
  call,
  installModel,
  rawCall,
  type ScriptedStep,
  scriptedModel,
  step,
  text,
} from "../support/scripted-model.ts";
import { ended, openHouse } from "./fixture.ts";

/** One bad call and then one good one; what came of the first, and that the run went on. */
describe.each(["consciousness", "timeline"] as const)("what a model of %s gets wrong", (continuity) => {
  const isLiving = continuity === "consciousness";

  const stage = async () => {
    const house = await openHouse();
    const [husam, sara, lee] = [
      await house.person("Husam"),
      await house.person("Sara"),
      await house.person("Sara Lee"),
    ];
    const analyst = await house.agent({ name: "Analyst", continuity, messaging: "threaded" });
    const alpha = await house.space("Alpha", [husam, sara, analyst]);
    await house.space("Beta", [lee, analyst]);
    const enters = isLiving ? [step(call("enter_space", { spaceId: alpha.id }))] : [];
    const fails = async (bad: ScriptedStep) => {
      onTestFinished(
        installModel(
          scriptedModel([...enters, bad, step(call("send_message", { text: "Sorry." })), step(text("Done."))]),
        ),
      );
      await alpha.post(husam, "Try it");
      const [run] = await ended(house.workspaceId, analyst, 1);
      expect(run).toMatchObject({ status: "completed", outcome: "answered" });
      expect(await alpha.texts()).toEqual(["Husam: Try it", "Analyst: Sorry."]);
      const [tried] = run?.steps[enters.length]?.toolCalls ?? [];
      expect(tried?.status).toBe("error");
      return JSON.stringify(tried?.output);
    };
    return { house, husam, analyst, alpha, fails };
  };

  test("[S4] a wait with nobody mentioned is told to name somebody", async () => {
    const { fails } = await stage();
    const why = await fails(step(call("send_message", { text: "Is it good?", wait: true })));
    expect(why).toContain("name those whose answers you await as @Name");
  });

  test.each([
    ["waits for", "@Sara Lee, is it good?", true],
    ["speaks to", "Thanks, @sara lee!", false],
    ["waits for, among others,", "@Husam and @Sara Lee, is it good?", true],
  ])("[S4] one that %s somebody who is in another space is told so", async (_, words, wait) => {
    const { fails } = await stage();
    const why = await fails(step(call("send_message", { text: words, wait })));
    expect(why).toContain("not_a_member");
    expect(why).toContain('\\"Sara Lee\\"');
  });

  test("[S4] a run of another agent is none of its own", async () => {
    const { fails, house, husam } = await stage();
    const other = await house.agent({ name: "Other", continuity });
    const gamma = await house.space("Gamma", [husam, other]);
    const undo = installModel(scriptedModel([step(text("Read."))]));
    await gamma.post(husam, "Hello");
    const [foreign] = await ended(house.workspaceId, other, 1);
    undo();
    const why = await fails(step(call("absorb_run", { runId: foreign?.id })));
    expect(why).toContain(isLiving ? "tool_unknown" : "you have no such run; get_my_runs lists yours");
  });

  const secret = "the launch code is 7429";
  const tooLong = `${secret} ${"x".repeat(maxTextBytes)}`;
  const again = /Nothing was done: [^"]*call the tool again/;

  test.each([
    [
      "text that is too long",
      "send_message",
      { text: tooLong },
      /text: must be at most 32768 bytes of UTF-8 \(maxTextBytes\)\. Nothing was done: shorten it, or split it/,
    ],
    ["a text that is blank", "send_message", { text: " " }, /text: must not be blank/],
    ["no text", "send_message", { words: secret }, /text: is missing: it must be a string/],
    ["no such field", "send_message", { text: "Hi", waits: secret }, /has unknown fields, leave them out: waits/],
    ["a field that an edit lacks", "block_edit", { label: "n", operations: [{ op: "undo" }], at: secret }, /out: at/],
    [
      "a bad key",
      "set_memories",
      { memories: [{ key: secret, value: "x" }] },
      /memories\.0\.key: must be 1–64 of A-Z a-z 0-9 _ -/,
    ],
    [
      "too many items",
      "get_memories",
      { keys: Array.from({ length: 60 }, () => "k") },
      /keys: must have at most 50 items/,
    ],
    ["a wrong choice", "search", { query: "x", mode: secret }, /mode: must be one of /],
    ["a number out of bounds", "read_messages", { limit: 7429 }, /limit: must be at most 200/],
    [
      "a part of a block's edit",
      "block_edit",
      { label: "notes", operations: [{ op: "append_text", text: 7429 }] },
      /operations\.0\.text: must be a string/,
    ],
  ])("[K12] of %s it reads field, rule and remedy, and never the value", async (_, tool, input, why) => {
    const { fails } = await stage();
    const read = await fails(step(call(tool, input)));
    expect(read).toMatch(why);
    expect(read).toMatch(again);
    expect(read).not.toContain("7429");
    expect(read.length).toBeLessThan(500);
  });

  test("[K12] of input that is no JSON it reads that, and how to send it", async () => {
    const { fails } = await stage();
    const read = await fails(step(rawCall("send_message", `{"text": "${secret}`)));
    expect(read).toContain("input: is not JSON, or was cut off; send one whole object");
    expect(read).not.toContain("7429");
  });

  test.each([
    [
      "memory",
      "set_memories",
      {
        memories: [
          { key: "a", value: "x" },
          { key: "b", value: tooLong },
        ],
      },
      "memories.1.value: a memory holds at most 4000 characters (maxMemoryCharacters)",
    ],
    ["goal", "set_goals", { goals: [{ id: "a", description: "x" }, { id: "b" }] }, "goals.1: goal"],
    [
      "total",
      "set_memories",
      { memories: Array.from({ length: 30 }, (_, at) => ({ key: `k${at}`, value: tooLong.slice(0, 4000) })) },
      "memories: there would be 120000 characters, more than maxMemoriesCharacters (100000). Set less, or delete some first",
    ],
    [
      "plan",
      "set_plans",
      { plans: [{ name: "a", instruction: "x", scheduledAt: tooLong }] },
      "plans.0.scheduledAt: is no time; write it like",
    ],
  ])("[K12] of several, it reads which %s was refused, and none is set", async (_, tool, input, why) => {
    const { fails, house, analyst } = await stage();
    const read = await fails(step(call(tool, input)));
    expect(read).toContain(why);
    const agent = env.AGENT.getByName(analyst.id);
    expect(unwrap(await agent.memories(house.workspaceId))).toEqual([]);
    expect(unwrap(await agent.goals(house.workspaceId))).toEqual([]);
    expect(read).not.toContain("7429");
  });
});
