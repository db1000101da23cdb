import { describe, expect, onTestFinished, test } from "vitest";
import { call, installModel, type ScriptedStep, scriptedModel, step, text } from "../support/scripted-model.ts";
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
});
