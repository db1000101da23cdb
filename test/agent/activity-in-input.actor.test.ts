import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { CreateBlock } from "../../src/protocol/block.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { Space } from "../../src/space/space.ts";
import { type ScriptedModel, step, text } from "../support/scripted-model.ts";
import { type AgentSettings, agentStub, ended, ids, openHouse, scripted, statementsOf, userTexts } from "./fixture.ts";

/** What other agents did, where the model reads it. */
type Room = Awaited<ReturnType<Awaited<ReturnType<typeof openHouse>>["space"]>>;

/** The analyst and a designer are in Alpha, the designer also in Beta: quiet spaces, where only a mention wakes. */
const stage = async (settings: Partial<AgentSettings> = {}) => {
  const house = await openHouse();
  const { workspaceId, key } = house;
  const husam = await house.person("Husam");
  const analyst = await house.agent({ name: "Analyst", ...settings });
  const designer = await house.agent({ name: "Designer" });
  const quiet = async (name: string, members: Parameters<typeof house.space>[1]): Promise<Room> => {
    const space = await house.space(name, members);
    unwrap(await space.stub().update(key, { wakePolicy: "addressed" }));
    return space;
  };
  const alpha = await quiet("Alpha", [husam, analyst, designer]);
  const beta = await quiet("Beta", [husam, designer]);
  const model = scripted(() => ({ ...step(text("Read it.")), usage: null }));
  const agent = env.AGENT.getByName(analyst.id);
  let said = 0;
  /** Resolves when the analyst has heard of it, where it is a member. */
  const says = async (space: Room, words: string, more: { expectsReply?: boolean } = {}): Promise<void> => {
    said += 1;
    const messageId = ids.deriveOwned("msg", space.id, said);
    const runId = ids.deriveOwned("run", designer.id, said);
    const root = { id: messageId, kind: "person" } as const;
    const message = { workspaceId, agentId: designer.id, runId, messageId, text: words, root, ...more };
    const { seq } = unwrap(await space.stub().append(message));
    await vi.waitFor(async () => {
      const { members } = unwrap(await space.stub().describe(key));
      if (!members?.some(({ id }) => id === analyst.id)) return;
      expect(await heardOf(space.id)).toBeGreaterThanOrEqual(seq);
    });
  };
  const heardOf = (spaceId: string): Promise<number> =>
    runInDurableObject(agentStub(analyst), (_, { storage }) => {
      const [row] = storage.sql.exec("select cursor from spaces where id = ?", spaceId).toArray();
      return Number(row?.cursor ?? 0);
    });
  let runs = 0;
  const wake = async (): Promise<string> => {
    unwrap(await agent.trigger(workspaceId, { serviceName: "jira", payload: {} }));
    runs += 1;
    await ended(workspaceId, analyst, runs);
    return userTexts(model.calls.at(-1)).at(-1) ?? "";
  };
  const join = async (space: Room) => {
    unwrap(await space.stub().addMember(key, analyst));
    await vi.waitFor(async () => expect(await heardOf(space.id)).toBeGreaterThan(0));
  };
  const leave = async (space: Room) => unwrap(await space.stub().removeMember(key, analyst.id));
  const context = async () => unwrap(await agent.context(workspaceId));
  const newest = async () => {
    const [run] = unwrap(await agent.runs(workspaceId, { limit: 1 })).items;
    return unwrap(await agent.run(workspaceId, run?.id ?? ""));
  };
  return { workspaceId, husam, analyst, designer, agent, alpha, beta, model, says, wake, join, leave, context, newest };
};

/** Watches what spaces are asked from now on. The first question is treated as `does` says. */
const watchWindows = (does: "answers" | "hangs" | "fails" = "answers") => {
  const { window } = Space.prototype;
  const never = Promise.withResolvers<never>();
  let first = true;
  const spy = vi.spyOn(Space.prototype, "window").mockImplementation(async function (this: Space, ...given) {
    const how = first ? does : "answers";
    first = false;
    if (how === "fails") throw new Error("the space is down");
    return how === "hangs" ? never.promise : window.apply(this, given);
  });
  onTestFinished(() => spy.mockRestore());
  return spy;
};

const heading = "ACTIVITY (other agents in your spaces, UTC):";
const lines = (of: string): string[] =>
  of
    .slice(of.indexOf(heading))
    .split("\n")
    .slice(1)
    .filter((line) => line.startsWith("  - ["))
    .map((line) => line.replace(/^ {2}- \[\d\d:\d\d\] /, ""));

const systemOf = (model: ScriptedModel): string => {
  const first = model.calls.at(-1)?.prompt[0];
  return first?.role === "system" ? first.content : "";
};

const kinds = ["consciousness", "timeline"] as const;

describe.each(kinds)("a %s", (continuity) => {
  test("[B4] asks nobody what others did, and not its own tables where, unless its config says so", async () => {
    const { analyst, alpha, says, wake, context } = await stage({ continuity });
    await says(alpha, "Here they are.");
    const windows = watchWindows();
    const statements = await statementsOf(agentStub(analyst));
    expect(await wake()).not.toContain("ACTIVITY");
    expect((await context()).sections.map(({ name }) => name)).not.toContain("activity");
    expect(windows).not.toHaveBeenCalled();
    const cursors = statements.filter(({ query }) => /^select "id", "cursor", "snapshot" from "spaces"/.test(query));
    expect([cursors.length, statements.length > 0]).toEqual([0, true]);
  });

  test("[K14] reads as many lines of what others did as its config says", async () => {
    const { agent, alpha, beta, says, wake, join, workspaceId } = await stage({
      continuity,
      context: { activity: { entries: 1 } },
    });
    await join(beta);
    await says(alpha, "Here they are.");
    await says(beta, "Which ones?", { expectsReply: true });
    expect(lines(await wake())).toEqual(['"Designer" asked in "Beta"']);
    unwrap(await agent.update(workspaceId, { context: { activity: true } }));
    await says(alpha, "These.");
    await says(beta, "Which of these?", { expectsReply: true });
    expect(lines(await wake())).toEqual(
      expect.arrayContaining(['"Designer" asked in "Beta"', '"Designer" wrote in "Alpha"']),
    );
    const refused = await agent.update(workspaceId, { context: { activity: { entries: 101 } } });
    const issues = [{ path: expect.stringContaining("context.activity") }];
    expect(refused).toMatchObject({ ok: false, problem: { code: "invalid_request", issues } });
  });

  test("[S1] reads what others did in the spaces that it is in, and nowhere else", async () => {
    const { alpha, beta, says, wake, join, leave, context } = await stage({ continuity, context: { activity: true } });
    await says(alpha, "Here they are.");
    await says(beta, "Nobody else hears this.");
    expect(lines(await wake())).toEqual(['"Designer" wrote in "Alpha"']);
    await join(beta);
    await says(beta, "Welcome. Which ones?", { expectsReply: true });
    expect(lines((await context()).sections.find(({ name }) => name === "activity")?.text ?? "")).toContain(
      '"Designer" asked in "Beta"',
    );
    await leave(beta);
    expect((await context()).sections.find(({ name }) => name === "activity")?.text ?? "").not.toContain("Beta");
    expect(await wake()).not.toContain('in "Beta"');
  });

  test("[R4] leaves a space out that does not answer, says so, and runs", async () => {
    const { alpha, beta, says, wake, join, context, newest } = await stage({
      continuity,
      context: { activity: true },
    });
    await join(beta);
    await says(alpha, "Here they are.");
    await says(beta, "And here.");
    const dropped = { name: "activity", reason: "1 space did not answer in time" };
    const failing = watchWindows("fails");
    expect((await context()).dropped).toContainEqual(dropped);
    failing.mockRestore();
    watchWindows("hangs");
    expect(lines(await wake())).toHaveLength(1);
    const run = await newest();
    expect(run.status).toBe("completed");
    expect(run.steps[0]?.input?.dropped).toContainEqual(dropped);
  });

  test("shows the blocks, rules and activity of its next input by name, and the tools that it has", async () => {
    const { agent, analyst, designer, workspaceId, alpha, says, context, model, wake } = await stage({
      continuity,
      context: { activity: true },
      memoryTools: false,
      toolRules: [{ tool: "set_goals", rule: "max_calls", count: 2 }],
    });
    const block = CreateBlock.parse({ label: "persona", type: "core", content: "You count things." });
    unwrap(await agent.createBlock(workspaceId, block, "system"));
    const owner = env.AGENT.getByName(designer.id);
    const theirs = CreateBlock.parse({ label: "rules", type: "core", content: "Be kind." });
    unwrap(await owner.createBlock(workspaceId, theirs, "system"));
    unwrap(await owner.shareBlock(workspaceId, "rules", { granteeId: analyst.id, permission: "ReadOnly" }));
    await says(alpha, "Here they are.");
    const view = await context();
    const section = (name: string) => view.sections.find((each) => each.name === name);
    expect(section("blocks")?.text).toContain("You count things.");
    expect(section(continuity === "timeline" ? "blocks" : "shared_blocks")?.text).toContain("Be kind.");
    expect(view.blocks).toEqual([
      { label: "persona", type: "core", tokens: expect.any(Number) },
      { label: "rules", type: "core", ownerId: designer.id, tokens: expect.any(Number) },
    ]);
    expect(section("tool_rules")?.text).toBe("# Tool Execution Rules\n\n- Call `set_goals` at most 2 times");
    expect(lines(section("activity")?.text ?? "")).toEqual(['"Designer" wrote in "Alpha"']);
    await wake();
    expect(view.instructions).toBe(systemOf(model));
    expect(view.tools).toEqual(model.calls.at(-1)?.tools?.map(({ name }) => name));
  });
});

describe("a consciousness", () => {
  test("is told what is new behind its inbox, once; what it was told before stays as it was", async () => {
    const { alpha, beta, says, wake, join, newest, agent, workspaceId } = await stage({ context: { activity: true } });
    await join(beta);
    await says(alpha, "Here they are.");
    expect(await wake()).toMatch(
      /^ACTIVITY \(other agents in your spaces, UTC\):\n {2}- \[\d\d:\d\d\] "Designer" wrote in "Alpha"$/,
    );
    const windows = watchWindows();
    expect(await wake()).not.toContain("ACTIVITY");
    expect(windows).not.toHaveBeenCalled();
    await says(beta, "Which ones?", { expectsReply: true });
    expect(lines(await wake())).toEqual(['"Designer" asked in "Beta"']);
    expect(windows).toHaveBeenCalledTimes(1);
    await says(beta, "I found them.");
    expect(lines(await wake())).toEqual(['"Designer" wrote in "Beta"']);
    expect((await newest()).prefixReuse).toBe(1);
    unwrap(await agent.update(workspaceId, { instructions: "Be brief." }));
    expect(lines(await wake())).toEqual([
      '"Designer" wrote in "Alpha"',
      '"Designer" asked in "Beta"',
      '"Designer" wrote in "Beta"',
    ]);
  });
});

describe("a timeline", () => {
  test("reads it anew with each run, before its trigger, without asking the trigger's space twice", async () => {
    const { alpha, says, model } = await stage({ continuity: "timeline", context: { activity: true } });
    await says(alpha, "Here they are.");
    await says(alpha, "@Analyst which ones?", { expectsReply: true });
    await model.called(1);
    const windows = watchWindows();
    await says(alpha, "@Analyst which ones?", { expectsReply: true });
    await model.called(2);
    expect(windows).toHaveBeenCalledTimes(1);
    const read = userTexts(model.calls.at(-1)).at(-1) ?? "";
    expect(read).toMatch(/\n {2}- \[\d\d:\d\d\] "Designer" asked in "Alpha"\nTRIGGER:\n/);
    expect(new Set(lines(read))).toEqual(new Set(['"Designer" wrote in "Alpha"', '"Designer" asked in "Alpha"']));
  });

  test("[K14] shows as much of it however little of its space's history it shows", async () => {
    const context = { activity: { entries: 2 }, historyMessages: 1 };
    const { husam, alpha, says, model } = await stage({ continuity: "timeline", context });
    await alpha.post(husam, "Where are they?");
    await says(alpha, "Here they are.");
    await says(alpha, "Which ones?", { expectsReply: true });
    await alpha.post(husam, "@Analyst hello");
    await model.called(1);
    const read = userTexts(model.calls.at(-1)).at(-1) ?? "";
    expect(lines(read)).toEqual(['"Designer" answered in "Alpha"', '"Designer" asked in "Alpha"']);
  });
});
