import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, test, vi } from "vitest";
import { Agent } from "../../src/agent/agent.ts";
import { AgentConfig } from "../../src/protocol/agent.ts";
import type { EntityRef } from "../../src/protocol/rpc.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { compartmentId } from "../../src/shared/ids.ts";
import { createGate } from "../support/gate.ts";
import { call, type ScriptedStep, step, text, waitAt } from "../support/scripted-model.ts";
import {
  type AgentSettings,
  accountsOf,
  agentStub,
  ended,
  ids,
  openScene,
  passTime,
  rowsIn,
  runsOf,
  scripted,
  undoLater,
} from "./fixture.ts";

/** An agent in an open space, Alpha, and in a confidential one, Board. Its steps are billed 9,000 tokens each. */
const undo = undoLater();
const usage = { inputTokens: 8990, outputTokens: 10 };
const noted = (): ScriptedStep => ({ ...step(text("Noted.")), usage });

const open = async (settings: Partial<AgentSettings> = {}) => {
  const scene = await openScene(settings);
  const { house, analyst, husam } = scene;
  const board = await house.space("Board", [husam, analyst], true);
  const mind: EntityRef = { ...analyst, id: compartmentId(ids, analyst.id, board.id) };
  const askBoard = async (words: string, runs = 1, who = husam) => {
    await board.post(who, words);
    return ended(house.workspaceId, mind, runs);
  };
  /** The person asks on, until the agent has no tokens for that. Answers how that run ended. */
  const askOn = async () => {
    for (let count = 1; count < 6; count += 1) {
      await board.post(husam, `Question ${count}`);
      const runs = await vi.waitFor(async () => {
        const all = await runsOf(house.workspaceId, mind);
        expect(all.length > count && all.every(({ status }) => status !== "running")).toBe(true);
        return all;
      });
      const ended = runs.find(({ error }) => error?.code === "budget_exhausted");
      if (ended) return ended.error;
    }
  };
  const ledger = () => accountsOf(analyst);
  return { ...scene, ...{ board, mind, askBoard, askOn, ledger }, compartment: env.AGENT.getByName(mind.id) };
};

const configOf = async (mind: EntityRef) => {
  const [row] = await rowsIn(mind, "SELECT config, secrets FROM agent");
  return { config: JSON.parse(String(row?.config)), secrets: JSON.parse(String(row?.secrets)) };
};

/** Has the first of these calls of any agent's object fail, before or after it did its work. */
const failOnce = (name: "configureCompartment" | "leaseTokens", times = 1, when = "before"): void => {
  const whole: unknown = Agent.prototype[name];
  let calls = 0;
  const spy = vi.spyOn(Agent.prototype, name).mockImplementation(function (this: Agent, ...args: unknown[]) {
    calls += 1;
    const done = calls > times || when === "after" ? Reflect.apply(whole as () => never, this, args) : undefined;
    if (calls <= times) throw new Error("overloaded");
    return done as never;
  });
  undo.push(() => spy.mockRestore());
};

describe("what a compartment runs by", () => {
  test("[C18] a changed config and secret reach a living compartment, tried again where it fails", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: new Date("2031-03-03T12:00:00Z") });
    const model = scripted(noted);
    const { house, agent, mind, analyst, askBoard } = await open();
    await askBoard("Hello");
    failOnce("configureCompartment");
    const lookUp = {
      name: "look",
      description: "Looks up",
      executionType: "internal",
      confidential: "allowed",
    } as const;
    unwrap(await agent.update(house.workspaceId, { instructions: "Be kind.", tools: [lookUp as never] }));
    unwrap(await agent.setSecrets(house.workspaceId, { KEY: "sealed" }));
    await vi.waitFor(async () => {
      await passTime(analyst, 2000);
      expect(await configOf(mind)).toMatchObject({ config: { instructions: "Be kind." }, secrets: { KEY: "sealed" } });
    });
    await askBoard("And now?", 2);
    const asked = model.calls.at(-1);
    expect(JSON.stringify(asked?.prompt[0])).toContain("Be kind.");
    expect(asked?.tools?.map(({ name }) => name)).toContain("look");
  });

  test("[C18] settings that come late do not take the place of newer ones", async () => {
    scripted(noted);
    const { house, compartment, mind, askBoard } = await open();
    await askBoard("Hello");
    const { config } = await configOf(mind);
    const tell = (version: number, name: string) =>
      compartment.configureCompartment(house.workspaceId, { version, config: { ...config, name }, secrets: {} });
    unwrap(await tell(7, "Newer"));
    unwrap(await tell(6, "Older"));
    expect((await configOf(mind)).config.name).toBe("Newer");
  });
});

test("[C18] a rule that a withheld tool makes impossible is told in the run, and to who sets it", async () => {
  const { tools, toolRules } = AgentConfig.parse({
    ...{ name: "Analyst", tools: [{ name: "mail", description: "Mails", executionType: "internal" }] },
    toolRules: [{ tool: "send_message", rule: "requires_prior", tools: ["mail"] }],
  });
  scripted((_, index) => step(index === 0 ? call("send_message", { text: "Hello." }) : text("Refused.")));
  const { house, agent, askBoard } = await open({ tools, toolRules });
  const [run] = await askBoard("Hello");
  expect(JSON.stringify(run?.steps[0])).toMatch(/tool_rule_broken.*You do not have mail here/);
  const { warnings } = unwrap(await agent.update(house.workspaceId, { instructions: "Be kind." }));
  expect(warnings).toEqual([expect.stringMatching(/^toolRules\.0: in confidential spaces each call of send_message/)]);
});

describe("what the minds of an agent may spend together", () => {
  test("[B2] [C18] steps of a compartment are booked in the agent's day, which holds for both", async () => {
    scripted(noted);
    const { house, mind, analyst, ask, askBoard, askOn, ledger, agent } = await open({
      limits: { maxTokensPerDay: 40_000, maxShareOfPerson: 1 },
    });
    await ask("Hello");
    await askBoard("Hello");
    await vi.waitFor(async () => expect(await ledger()).toContainEqual(["", 18_000, "{}"]));
    expect((await askOn())?.message).toMatch(/^maxTokensPerDay/);
    const spent = Number((await ledger())[0]?.[1]);
    expect(spent).toBeLessThanOrEqual(40_000 + 9000);
    const before = (await runsOf(house.workspaceId, mind)).filter(({ status }) => status === "completed").length;
    // It goes on as soon as its owner allows more.
    unwrap(await agent.update(house.workspaceId, { limits: { maxTokensPerDay: 400_000 } }));
    await vi.waitFor(async () => {
      const runs = await runsOf(house.workspaceId, mind);
      expect(runs.filter(({ status }) => status === "completed").length).toBeGreaterThan(before);
    });
    expect(
      unwrap(await env.AGENT.getByName(analyst.id).describe(house.workspaceId)).activity?.tokensToday,
    ).toBeGreaterThan(spent);
  });

  test("[C11] [C18] one person's share holds over all minds", async () => {
    scripted(noted);
    const { ask, askBoard, askOn, ledger, husam } = await open({ limits: { maxTokensPerDay: 100_000 } });
    await ask("Hello");
    await askBoard("Hello");
    await vi.waitFor(async () => expect(await ledger()).toContainEqual([husam.id, 18_000, "{}"]));
    expect((await askOn())?.message).toMatch(/^maxShareOfPerson/);
    const [, [, spent] = []] = await ledger();
    expect(Number(spent)).toBeLessThanOrEqual(25_000 + 9000);
  });

  test.each(["open mind", "compartment"])(
    "[B2] [C11] [R1] a step in the %s waits while the other mind's leaves no room",
    async (waiting) => {
      const { house, husam, analyst, mind, space, board } = await open({
        limits: { maxTokensPerDay: 8000, maxShareOfPerson: 1 },
      });
      const frames = await (waiting === "compartment" ? board : space).watch(husam);
      const [first, second] = waiting === "compartment" ? [space, board] : [board, space];
      const gate = createGate();
      const model = scripted(() => step(waitAt(gate), text("Noted.")));
      await first.post(husam, "Hello");
      await gate.reached;
      await second.post(husam, "And here?");
      const waits = waiting === "compartment" ? mind : analyst;
      await vi.waitFor(async () => expect(await runsOf(house.workspaceId, waits)).toHaveLength(1));
      // The lease is still known to be under way, and the run goes on.
      await runInDurableObject(agentStub(waits), (_, state) => state.abort()).catch(() => undefined);
      await passTime(waits, 6000);
      await vi.waitFor(async () =>
        expect(await runsOf(house.workspaceId, waits)).toMatchObject([{ status: "running" }]),
      );
      gate.open();
      expect(await ended(house.workspaceId, waits, 1)).toMatchObject([{ status: "completed" }]);
      expect(model.calls).toHaveLength(2);
      expect(frames.filter(({ type }) => type === "agent.budget_exhausted")).toEqual([]);
    },
  );

  test("[C18] the same lease again books nothing more, and is settled once", async () => {
    const { house, agent, ledger } = await open();
    const lease = { lease: "ent_X 1:0 a", tokens: 5000, person: null };
    expect(unwrap(await agent.leaseTokens(house.workspaceId, lease))).toBe("reserved");
    expect(unwrap(await agent.leaseTokens(house.workspaceId, lease))).toBe("reserved");
    expect(await ledger()).toEqual([["", 0, JSON.stringify({ [lease.lease]: 5000 })]]);
    const settled = { lease: lease.lease, billed: 1200 };
    unwrap(await agent.settleTokens(house.workspaceId, settled));
    unwrap(await agent.settleTokens(house.workspaceId, settled));
    expect(await ledger()).toEqual([["", 1200, "{}"]]);
    const much = { ...lease, lease: "ent_X 1:1 b", tokens: 3_000_000 };
    expect(unwrap(await agent.leaseTokens(house.workspaceId, much))).toBe("day");
  });

  const failing = ["before", "after"];
  test.for(failing)(
    "[B2] [C18] a lease that is lost %s it was booked pauses the run, and is given back",
    async (when) => {
      const model = scripted(noted);
      const { house, mind, board, husam, ledger } = await open();
      failOnce("leaseTokens", 4, when);
      await board.post(husam, "Hello");
      await vi.waitFor(
        async () => {
          const [run] = await runsOf(house.workspaceId, mind);
          expect(run?.status).toBe("running");
          const [row] = await rowsIn(mind, "SELECT resume_at FROM runs");
          expect(row?.resume_at).not.toBeNull();
        },
        { timeout: 10_000 },
      );
      expect(model.calls).toHaveLength(0);
      await passTime(mind, 60_000);
      const [run] = await ended(house.workspaceId, mind, 1);
      expect(run?.status).toBe("completed");
      await vi.waitFor(async () => expect((await ledger())[0]).toEqual(["", 9000, "{}"]));
    },
  );
});
