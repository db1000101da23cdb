import { runDurableObjectAlarm } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, test, vi } from "vitest";
import type { CallOptions } from "../../../src/models/language-model.ts";
import { AgentConfig } from "../../../src/protocol/agent.ts";
import type { EntityRef } from "../../../src/protocol/rpc.ts";
import { unwrap } from "../../../src/shared/errors.ts";
import { armFault } from "../../../src/shared/fault.ts";
import { apiError, call, refusal, step } from "../../support/scripted-model.ts";
import { ids } from "../fixture.ts";
import { bound, eachTest, inStep, passSeconds, say, type Talkers, talkers, told } from "./scene.ts";

eachTest();

const six = (count: number): number[] => Array.from({ length: count }, () => bound);
/** A run is one step that speaks, and one that ends it. */
const twice = (runs: number[]): number[] => runs.map((count) => count * 2);

type Space = Awaited<ReturnType<Talkers["house"]["space"]>>;
const messagesIn =
  (...spaces: Space[]) =>
  async (): Promise<number> =>
    (await Promise.all(spaces.map((space) => space.messages()))).flat().length;

/** Whoever was muted answers a person at once: each of these agents once more. */
const stillAnswers = async (stage: Talkers, space: Space, who: EntityRef, runs: number[]): Promise<void> => {
  stage.everyone(() => [() => say(space.id, "Yes?")]);
  const before = (await space.messages()).length;
  const { id: root } = await space.post(who, "Are you there?");
  await vi.waitFor(async () => {
    for (const [index, count] of runs.entries()) {
      const after = (await stage.runs(index)).toReversed().slice(count);
      expect(after[0]?.trigger.text).toBe("Are you there?");
      expect(after[0]?.roots).toContain(root);
      expect(after[0]?.status).toBe("completed");
    }
  });
  expect((await space.texts()).slice(before)).toContain("talker-0: Yes?");
};

test.each([
  ["two who answer each other, living", 2, "consciousness"],
  ["two who answer each other, stateless", 2, "timeline"],
  ["five in one space who all answer everything, living", 5, "consciousness"],
] as const)("[B1] %s: woken as often as a root may", async (scenario, count, continuity) => {
  const stage = await talkers(count, { continuity });
  const [husam] = stage.people;
  const space = await stage.house.space("Alpha", [husam, ...stage.agents]);
  const together = inStep(count);
  const answer = async () => {
    if (continuity === "consciousness") await together();
    return say(space.id);
  };
  stage.everyone(() => [answer]);
  await space.post(husam, "Talk");
  const runs = six(count);
  await stage.end(scenario, { runs, steps: twice(runs), messages: 1 + count * bound }, messagesIn(space));
  await stillAnswers(stage, space, husam, runs);
});

/** Three spaces of two agents each, and a desk where a person speaks to the first: whoever hears passes it on. */
const ring = async (settings: Parameters<typeof talkers>[1] = {}) => {
  const stage = await talkers(3, settings);
  const { house, people, agents } = stage;
  const [husam] = people;
  const [a, b, c] = agents as [EntityRef, EntityRef, EntityRef];
  const desk = await house.space("Desk", [husam, a]);
  const spaces = [
    await house.space("A to B", [husam, a, b]),
    await house.space("B to C", [husam, b, c]),
    await house.space("C to A", [husam, c, a]),
  ] as const;
  /** An agent hears the space before its own, and its own voice never. */
  const passOn = (index: number) => say(spaces[index]?.id ?? "", "Pass it on");
  return { stage, husam, desk, passOn, messages: messagesIn(desk, ...spaces) };
};

test("[B1] three in a ring of three spaces, each thinking for 20 s: caught like fast ones", async () => {
  const { stage, husam, desk, passOn, messages } = await ring();
  const think = (index: number) => {
    passSeconds(20);
    return passOn(index);
  };
  stage.everyone((index) => [() => think(index)]);
  await desk.post(husam, "Go");
  const runs = six(3);
  await stage.end(
    "three in a ring of three spaces, 20 s of thinking each",
    {
      ...{ runs, steps: twice(runs), messages: 1 + 3 * bound },
    },
    messages,
  );
  await stillAnswers({ ...stage, agents: stage.agents.slice(0, 1) }, desk, husam, six(1));
});

test("[B1] three in a ring, by one-off plans of 20 s: a plan keeps the root of its run", async () => {
  const { stage, husam, desk, passOn, messages } = await ring();
  const again = { name: "Again", instruction: "Pass it on", runAfter: "20 seconds" };
  const later = step(call("set_plans", { plans: [again] }));
  stage.everyone((index) => [(options) => (told(options).includes('[Plan "Again"]') ? passOn(index) : later)]);
  await desk.post(husam, "Go");
  // A message and its plan are two wakes: half as many rounds.
  for (let hop = 1; hop <= (3 * bound) / 2; hop += 1) {
    const hears = stage.agents.map((_, index) => 2 * Math.floor((hop + 2 - index) / 3));
    await stage.stopsAt(hears.map((runs, index) => ((hop - 1) % 3 === index ? runs - 1 : runs)));
    passSeconds(20);
    await stage.ring();
  }
  const runs = six(3);
  await stage.end(
    "three in a ring of three spaces, a plan of 20 s each",
    {
      ...{ runs, steps: twice(runs), messages: 1 + (3 * bound) / 2 },
    },
    messages,
  );
});

const server = { name: "ponder", description: "Ponders", executionType: "external", visible: false };

test.each([
  ["an answer of 20 s that a living run waits for", "consciousness", false, bound],
  ["an answer of 20 s that a stateless run waits for", "timeline", false, bound],
  // The answer is an event of the call's root: a message and its answer are two wakes.
  ["an answer of 20 s that comes as an event", "consciousness", true, bound / 2],
] as const)("[B1] three in a ring, by %s, are caught", async (...given) => {
  const [how, continuity, async, rounds] = given;
  const { tools } = AgentConfig.parse({ name: "Worker", tools: [{ ...server, async }] });
  const { stage, husam, desk, passOn, messages } = await ring({ continuity, tools });
  const { workspaceId } = stage;
  const ponder = step(call("ponder", {}));
  const isAnswered = (options: CallOptions) => told(options).includes("[Tool result ponder");
  stage.everyone((index) =>
    async ? [(options) => (isAnswered(options) ? passOn(index) : ponder)] : [() => ponder, () => passOn(index)],
  );
  const listed = async () => unwrap(await env.WORKSPACE.getByName(workspaceId).toolCalls({ limit: 10 })).items;
  await desk.post(husam, "Go");
  const pondered = new Set<string>();
  while (pondered.size < 3 * rounds) {
    const { agentId, toolCallId } = await vi.waitFor(async () => {
      const waiting = (await listed()).find((each) => !pondered.has(each.toolCallId));
      if (!waiting) throw new Error("nobody asks");
      return waiting;
    });
    pondered.add(toolCallId);
    passSeconds(20);
    unwrap(await env.AGENT.getByName(agentId).answerToolCall(workspaceId, toolCallId, { result: "Pondered." }));
  }
  const runs = six(3);
  const steps = async ? twice(runs) : runs.map((count) => count * 3);
  await stage.end(`three in a ring, ${how}`, { runs, steps, messages: 1 + 3 * rounds }, messages);
});

test("[B1] two people at once: each message is a root of its own, even amid another's loop", async () => {
  const stage = await talkers(2, { continuity: "timeline" });
  const [husam, sara] = stage.people;
  const space = await stage.house.space("Alpha", [husam, sara, ...stage.agents]);
  stage.everyone(() => [() => say(space.id)]);
  await Promise.all([space.post(husam, "Talk"), space.post(sara, "Talk, too")]);
  await vi.waitFor(async () => expect((await stage.runs(0)).length).toBeGreaterThan(bound));
  await space.post(sara, "And of this");
  const runs = [3 * bound, 3 * bound];
  const expected = { runs, steps: twice(runs), messages: 3 + 6 * bound };
  await stage.end("two at whom two people speak, one of them again in the middle", expected, messagesIn(space));
  for (const index of [0, 1]) expect(await stage.wakes(index)).toEqual([bound, bound, bound]);
});

test("[B1] a webhook is a root like a person's message", async () => {
  const stage = await talkers(2);
  const [husam] = stage.people;
  const [first] = stage.agents;
  const space = await stage.house.space("Alpha", [husam, ...stage.agents]);
  stage.everyone(() => [() => say(space.id)]);
  const stub = env.AGENT.getByName(first?.id ?? "");
  const version = ids.mint("key");
  const hookId = ids.deriveOwned("hook", first?.id ?? "", version);
  const hook = { id: hookId, scheme: "github", name: "github", sealed: "sealed", version } as const;
  unwrap(await stub.createHook(stage.workspaceId, hook));
  for (const sent of ["d-1", "d-1"]) {
    const delivery = { name: { id: sent }, payload: { action: "opened" } };
    unwrap(await stub.receive(stage.workspaceId, hookId, delivery));
  }
  const runs = six(2);
  await stage.end(
    "two whom a webhook wakes, sent twice",
    { runs, steps: twice(runs), messages: 12 },
    messagesIn(space),
  );
  await stillAnswers(stage, space, husam, runs);
});

test("[B1] a cron that an agent set begins a root every five minutes, twelve in an hour", async () => {
  const minutes = 60;
  const stage = await talkers(2, { limits: { maxWakesPerRoot: 2 } });
  const [husam] = stage.people;
  const [ticker] = stage.agents;
  if (!ticker) throw new Error("no agent");
  const desk = await stage.house.space("Desk", [husam, ticker]);
  const space = await stage.house.space("Alpha", [husam, ...stage.agents]);
  const tick = { id: "tick", name: "Tick", instruction: "Tick", cron: "* * * * *" };
  stage.opens(0, (options) =>
    told(options).includes("Begin") ? step(call("set_plans", { plans: [tick] })) : say(space.id),
  );
  stage.opens(1, () => say(space.id));
  await desk.post(husam, "Begin");
  await stage.stopsAt([1, 0]);
  // A tick and the other's answer are two wakes of the ticker; the other is woken by each of its two messages.
  for (let minute = 1; minute <= minutes; minute += 1) {
    passSeconds(60);
    await stage.ring();
    const roots = Math.ceil(minute / 5);
    await stage.stopsAt([1 + 2 * roots, 2 * roots]);
  }
  expect(await env.AGENT.getByName(ticker.id).deletePlan(stage.workspaceId, "tick")).toMatchObject({ ok: true });
  const runs = [25, 24];
  const expected = { runs, steps: twice(runs), messages: 1 + 24 + 24 };
  await stage.end(
    "one whose own plan ticks each minute, and one who answers: an hour",
    expected,
    messagesIn(desk, space),
  );
});

/** Two whom a person woke through the first of them: one message at a time goes to and fro. */
const toAndFro = async () => {
  const stage = await talkers(2);
  const [husam] = stage.people;
  const desk = await stage.house.space("Desk", [husam, ...stage.agents.slice(0, 1)]);
  const space = await stage.house.space("Alpha", [husam, ...stage.agents]);
  stage.everyone(() => [() => say(space.id)]);
  /** All timers go off, until the agents have had these runs. */
  const comesTo = (runs: number[]) =>
    vi.waitFor(
      async () => {
        passSeconds(60);
        for (const one of [desk, space]) {
          const stub: unknown = one.stub();
          await runDurableObjectAlarm(stub as DurableObjectStub).catch(() => false);
        }
        await stage.ring();
        expect(await stage.counts()).toEqual(runs);
      },
      { timeout: 10_000, interval: 20 },
    );
  return { stage, husam, desk, space, comesTo, messages: messagesIn(desk, space) };
};

test("[B1] [R1] crashes amid a loop do not reset what was counted, and a replay is not counted", async () => {
  const { stage, husam, desk, comesTo, messages } = await toAndFro();
  const crashes = [
    armFault("agent.after-take", 1),
    armFault("agent.after-journal", 5),
    armFault("agent.after-effect", 8),
    armFault("agent.before-commit", 5),
    armFault("agent.after-commit", 7),
    armFault("agent.after-deliver", 9),
  ];
  await desk.post(husam, "Talk").catch(() => undefined);
  const runs = six(2);
  await comesTo(runs);
  await Promise.all(crashes);
  const scenario = "two who answer each other, six crashes on the way";
  await stage.end(scenario, { runs, steps: twice(runs), messages: 1 + 2 * bound }, messages);
});

test("[B1] [R1] a run that failed is tried again without being counted again", async () => {
  const { stage, husam, desk, space, comesTo, messages } = await toAndFro();
  let asked = 0;
  stage.opens(1, () => {
    asked += 1;
    return asked === 3 || asked === 5 ? refusal(apiError(401)) : say(space.id);
  });
  await desk.post(husam, "Talk");
  const runs = [bound, bound + 2];
  await comesTo(runs);
  expect((await stage.runs(1)).filter(({ status }) => status === "failed")).toHaveLength(2);
  const expected = { runs, steps: twice(six(2)), messages: 1 + 2 * bound };
  await stage.end("two who answer each other, two failures on the way", expected, messages);
});
