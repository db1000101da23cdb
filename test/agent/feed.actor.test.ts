import { evictDurableObject } from "cloudflare:test";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { Agent } from "../../src/agent/agent.ts";
import { watchdogMs } from "../../src/agent/bounds.ts";
import { consciousness } from "../../src/agent/run/continuity/consciousness.ts";
import { timeline } from "../../src/agent/run/continuity/timeline.ts";
import { refuse, unwrap } from "../../src/shared/errors.ts";
import { armFault } from "../../src/shared/fault.ts";
import { createGate } from "../support/gate.ts";
import { answer, call, step, text, waitAt } from "../support/scripted-model.ts";
import { dumpOf, openBoth } from "./compartment.ts";
import { agentStub, inboxOf, passTime, rowsIn, scripted, undoLater, userTexts } from "./fixture.ts";

/** In a confidential space an agent knows what it did openly. Nobody outside can tell that it was asked. */
undoLater();
const both = ["consciousness", "timeline"] as const;
const ways = { consciousness, timeline };

const inputOf = (given: Parameters<typeof userTexts>[0]): string => JSON.stringify(given?.prompt ?? []);

/** Spies on the feeds that open minds are asked for. */
const feeds = () => {
  const spy = vi.spyOn(Agent.prototype, "feed");
  onTestFinished(() => spy.mockRestore());
  return spy;
};

describe.each(both)("%s:", (continuity) => {
  test("[C21] in a confidential space it knows what it said, set and planned openly", async () => {
    const { house, space, ask, agent, secret } = await openBoth({ continuity });
    const { workspaceId } = house;
    unwrap(await agent.putGoal(workspaceId, "q4", { description: "Finish the report" }));
    unwrap(await agent.putPlan(workspaceId, "daily", { name: "Daily", instruction: "Count", cron: "0 9 * * *" }));
    const model = scripted([
      step(call("enter_space", { spaceId: space.id })),
      step(
        call("send_message", { text: "The budget is 40k." }),
        call("set_memories", { memories: [{ key: "budget", value: "40k" }] }),
      ),
      step(text("Said the budget.")),
      step(text("Noted.")),
    ]);
    await ask("What is the budget?");
    const [run] = await secret.ask("Is the budget enough?", 1);
    expect(run?.status).toBe("completed");
    const input = inputOf(model.calls.at(-1));
    expect(input).toContain("The budget is 40k.");
    expect(input).toContain('- \\"budget\\": \\"40k\\" [open]');
    expect(input).toContain("(id: q4, active, open)");
    expect(input).toMatch(/\\"Daily\\" \(id: daily, recurring, cron: 0 9 \* \* \*, next: [^)]*, open\)/);
    expect(input).toContain(`\\"Alpha\\" (id: ${space.id})`);
    expect(input).toContain("Is the budget enough?");
  });

  test("[C21] it knows what it did openly since, and is told of a run once", async () => {
    const { space, ask, secret } = await openBoth({ continuity });
    const model = scripted([...answer(space.id, "First answer."), step(text("Read."))]);
    await ask("First?");
    await secret.ask("Anything?", 1);
    model.push(...answer(space.id, "Second answer."), step(text("Read again.")));
    await ask("Second?", 2);
    await secret.ask("And now?", 2);
    const input = inputOf(model.calls.at(-1));
    expect(input).toContain("Second answer.");
    expect(input).toContain("First answer.");
    expect(await rowsIn(secret.mind, "SELECT fed, kept_before FROM runs ORDER BY ordinal")).toEqual(
      continuity === "timeline"
        ? [1, 0, 1, 0].map((fed) => ({ fed, kept_before: 0 }))
        : [1, 0, 1, 0].map((fed, index) => ({ fed, kept_before: index })),
    );
    expect(await secret.runs()).toHaveLength(2);
  });

  test("[C21] it knows at once, and once, what it says there from outside, though it crashes", async () => {
    const { house, husam, space, secret } = await openBoth({ continuity });
    const model = scripted([step(text("Read."))]);
    await secret.ask("Hello", 1);
    const gate = createGate();
    model.push(...answer(secret.space.id, "The numbers are in.").slice(0, 2), step(waitAt(gate), text("Told.")));
    // The second delivery is of the words.
    const crashed = armFault("agent.after-deliver", 1);
    await space.post(husam, "Tell the board");
    await Promise.all([gate.reached, crashed]);
    const said = (await secret.space.messages()).at(-1);
    const known = async () =>
      unwrap(await secret.stub().knows(house.workspaceId, { messageId: said?.id ?? "" })).places;
    const isWhole = expect.objectContaining({ how: continuity === "timeline" ? "tool" : "verbatim" });
    await expect.poll(known, { timeout: 10_000 }).toContainEqual(isWhole);
    model.push(step(text("Yes.")));
    await secret.ask("Did you say that?", 2);
    const input = inputOf(model.calls.at(-1));
    expect(input.split("The numbers are in.")).toHaveLength(2);
    expect(await known()).toContainEqual(isWhole);
    expect(await secret.runs()).toHaveLength(2);
    gate.open();
  });

  test("[C21] a crash between the feed and its run repeats nothing and loses nothing", async () => {
    const { space, ask, secret, husam } = await openBoth({ continuity });
    const model = scripted([...answer(space.id, "Open answer."), step(text("Read."))]);
    await ask("Open?");
    const cut = vi.spyOn(ways[continuity], "begin").mockImplementationOnce(() => {
      throw new Error("cut here");
    });
    onTestFinished(() => cut.mockRestore());
    await secret.tell("Anything?");
    await vi.waitFor(() => expect(cut).toHaveBeenCalled());
    await evictDurableObject(agentStub(secret.mind));
    await passTime(secret.mind, watchdogMs);
    const [run] = await secret.ended(1);
    expect(run).toMatchObject({ status: "completed", trigger: { senderName: husam.name } });
    expect(inputOf(model.calls.at(-1))).toContain("Open answer.");
    expect(await rowsIn(secret.mind, "SELECT fed FROM runs ORDER BY ordinal")).toEqual([{ fed: 1 }, { fed: 0 }]);
  });

  test("[C21] while the open mind cannot be reached no run begins, and its people see that", async () => {
    const { house, space, ask, secret, husam } = await openBoth({ continuity });
    const model = scripted([...answer(space.id, "Open answer."), step(text("Read."))]);
    await ask("Open?");
    const seen = await secret.space.watch(husam);
    const works = () => seen.flatMap((frame) => (frame.type === "agent.inactive" ? [frame.reason] : []));
    const asked = feeds().mockImplementation(async () => refuse("internal", "away"));
    await secret.tell("Anything?");
    await vi.waitFor(() => expect(asked).toHaveBeenCalled());
    expect(await inboxOf(house.workspaceId, secret.mind)).toMatchObject([{ status: "pending" }]);
    expect(await secret.runs()).toEqual([]);
    await vi.waitFor(() => expect(works()).toContain("unavailable"));
    const later = await secret.space.watch(husam);
    await vi.waitFor(() => expect(later[0]).toMatchObject({ waiting: [{ reason: "unavailable" }] }));
    const { activity } = unwrap(await secret.stub().describe(house.workspaceId));
    const lastError = { code: "unavailable" };
    expect(activity).toMatchObject({ state: "backing_off", nextRetryAt: expect.any(String), lastError });
    asked.mockRestore();
    await passTime(secret.mind, watchdogMs);
    await secret.ended(1);
    expect(inputOf(model.calls.at(-1))).toContain("Open answer.");
    await vi.waitFor(() => expect(works().slice(-2)).toEqual([undefined, undefined]));
  });

  test("[C21] a feed with nothing new is one question and writes no row", async () => {
    const { space, ask, secret } = await openBoth({ continuity });
    scripted((_, index) => answer(space.id, "Open answer.")[index] ?? step(text("Read.")));
    await ask("Open?");
    await secret.ask("Anything?", 1);
    const asked = feeds();
    const before = await dumpOf(secret.mind);
    await secret.ask("And now?", 2);
    const after = await dumpOf(secret.mind);
    expect(asked).toHaveBeenCalledTimes(1);
    expect(after.feed).toEqual(before.feed);
    expect(after.runs).toHaveLength((before.runs?.length ?? 0) + 1);
  });

  test("[C17] feeding changes nothing in the open mind, and its next input is the same", async () => {
    const { house, space, ask, agent, analyst, secret } = await openBoth({ continuity });
    const { workspaceId } = house;
    scripted((_, index) => answer(space.id, "Open answer.")[index] ?? step(text("Read.")));
    await ask("Open?");
    // It comes to be with its first message.
    await secret.ask("Hello", 1);
    const now = Date.now();
    const seen = async () => {
      vi.setSystemTime(now);
      // Only the cost of the compartment's steps comes back: it is booked there.
      const { ledger: _, ...rows } = await dumpOf(analyst);
      return { rows, input: unwrap(await agent.context(workspaceId)) };
    };
    const before = await seen();
    await secret.ask("The merger is on Friday.", 2);
    await secret.ask("Tell nobody.", 3);
    expect(await seen()).toEqual(before);
  });

  test("[C21] a changed config is there with the next run, also where no notice of it came", async () => {
    const { house, agent, secret } = await openBoth({ continuity });
    const model = scripted(() => step(text("Read.")));
    await secret.ask("Anything?", 1);
    const lost = vi
      .spyOn(Agent.prototype, "configureCompartment")
      .mockImplementation(async () => refuse("unavailable", "away"));
    onTestFinished(() => lost.mockRestore());
    const other = continuity === "timeline" ? "consciousness" : "timeline";
    unwrap(await agent.update(house.workspaceId, { instructions: "Speak of ducks.", continuity: other }));
    await secret.ask("And now?", 2);
    expect(inputOf(model.calls.at(-1))).toContain("Speak of ducks.");
    expect(await rowsIn(secret.mind, "SELECT continuity FROM runs WHERE NOT fed ORDER BY ordinal")).toEqual([
      { continuity },
      { continuity: other },
    ]);
  });

  test("[C18] it may enter and read an open space, whose messages count as seen", async () => {
    const { space, ask, secret } = await openBoth({ continuity });
    const model = scripted([...answer(space.id, "Open answer."), step(text("Read."))]);
    await ask("Open?");
    await secret.ask("Anything?", 1);
    model.push(step(call("enter_space", { spaceId: space.id })), step(text("Read.")));
    const runs = await secret.ask("Look there", 2);
    const [{ output } = { output: null }] = runs.at(-1)?.steps[0]?.toolCalls ?? [];
    expect(output).toMatchObject({ success: true, spaceName: "Alpha", totalMessages: 2 });
    expect(JSON.stringify(output)).toContain("Open answer.");
    expect(JSON.stringify(output)).not.toContain('"seen":false');
  });

  test("[C18] it may not change what it keeps openly, and is told why by name", async () => {
    const { house, agent, secret } = await openBoth({ continuity });
    const { workspaceId } = house;
    unwrap(await agent.putMemory(workspaceId, "budget", "40k"));
    unwrap(await agent.putGoal(workspaceId, "q4", { description: "Finish the report" }));
    unwrap(await agent.putPlan(workspaceId, "daily", { name: "Daily", instruction: "Count", cron: "0 9 * * *" }));
    const plan = { id: "daily", name: "Mine", instruction: "Look", runAfter: "2 hours" };
    const model = scripted([
      step(
        call("set_memories", {
          memories: [
            { key: "mine", value: "1" },
            { key: "budget", value: "0" },
          ],
        }),
        call("delete_memories", { keys: ["budget"] }),
        call("set_goals", { goals: [{ id: "q4", status: "completed" }] }),
        call("delete_goals", { goalIds: ["q4"] }),
        call("set_plans", { plans: [plan] }),
        call("delete_plans", { planIds: ["daily"] }),
      ),
      step(call("set_memories", { memories: [{ key: "mine", value: "1" }] }), call("get_memories", {})),
      step(text("Done.")),
    ]);
    const [run] = await secret.ask("Change them all", 1);
    const outputs = run?.steps.flatMap(({ toolCalls }) => toolCalls.map(({ output }) => JSON.stringify(output))) ?? [];
    const rule = "a run of a confidential space may not change it; set another";
    for (const [index, what] of ["memory", "memory", "goal", "goal", "plan", "plan"].entries()) {
      expect(outputs[index]).toContain(`is an open ${what}; ${rule} ${what === "memory" ? "key" : "id"}`);
    }
    expect(outputs.at(-1)).toBe('{"memories":[{"key":"budget","value":"40k","open":true},{"key":"mine","value":"1"}]}');
    expect(unwrap(await agent.memories(workspaceId))).toMatchObject([{ key: "budget", value: "40k" }]);
    expect(unwrap(await agent.plans(workspaceId))).toHaveLength(1);
    expect(model.calls).toHaveLength(3);
  });

  test("[C21] an open memory that comes later under the same key stands beside its own, marked", async () => {
    const { house, agent, secret } = await openBoth({ continuity });
    const model = scripted([
      step(call("set_memories", { memories: [{ key: "a", value: "mine" }] })),
      step(text("Set.")),
      step(call("set_memories", { memories: [{ key: "a", value: "still mine" }] })),
      step(text("Read.")),
      step(text("Read.")),
    ]);
    await secret.ask("Keep it", 1);
    unwrap(await agent.putMemory(house.workspaceId, "a", "open"));
    await secret.ask("And now?", 2);
    expect(inputOf(model.calls[2])).toContain('\\"a\\": \\"open\\" [open]');
    unwrap(await agent.deleteMemory(house.workspaceId, "a"));
    await secret.ask("And then?", 3);
    const last = userTexts(model.calls.at(-1)).at(-1) ?? "";
    expect(last).toContain('- "a": "still mine"');
    if (continuity === "consciousness") expect(last).toContain('- "a" [open] was cleared');
    else expect(last).not.toContain("[open]");
  });

  test("[C21] get_my_runs there reads its open runs and its own", async () => {
    const { space, ask, secret } = await openBoth({ continuity });
    const model = scripted([...answer(space.id, "Open answer."), step(text("Read."))]);
    const [open] = await ask("Open?");
    const [own] = await secret.ask("Secret?", 1);
    model.push(step(call("get_my_runs", {}), call("get_my_runs", { runId: open?.id })), step(text("Read.")));
    const runs = await secret.ask("What did you do?", 2);
    const [all, one] = runs[1]?.steps.flatMap(({ toolCalls }) => toolCalls.map(({ output }) => output)) ?? [];
    expect(all).toMatchObject({ runs: [{ thisRun: true }, { runId: own?.id }, { runId: open?.id }] });
    expect(JSON.stringify(one)).toContain("Open answer.");
    expect(await secret.stub().run("", open?.id ?? "")).toMatchObject({ ok: false });
  });
});
