import { abortAllDurableObjects, runDurableObjectAlarm } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, onTestFinished, test, vi } from "vitest";
import { Agent } from "../../../src/agent/agent.ts";
import { replyWaitMs } from "../../../src/agent/bounds.ts";
import { unwrap } from "../../../src/shared/errors.ts";
import { compartmentId } from "../../../src/shared/ids.ts";
import { call, step, text } from "../../support/scripted-model.ts";
import { approved, ask, deploy, eachTest, freshPath, requestsTo, scene, yes } from "../calls/scene.ts";
import { ended, told as hasTold, ids, inboxOf, passTime, rowsIn, userTexts } from "../fixture.ts";

/** What an agent's open mind asked in a space, and awaits, as that space becomes confidential. */
eachTest();

const continuities = ["timeline", "consciousness"] as const;

type Scene = Awaited<ReturnType<typeof scene>>;

/** What happens in the scene's space. Its agent hears nothing while `away.now` is set. */
const inSpace = ({ space, agent, workspaceId, bob, model }: Scene) => {
  const mind = { ...agent, id: compartmentId(ids, agent.id, space.id) };
  const away = { now: false };
  const told: string[] = [];
  const { deliver } = Agent.prototype;
  const spy = vi.spyOn(Agent.prototype, "deliver").mockImplementation(async function (this: Agent, delivery) {
    if (away.now) throw new Error("away");
    told.push(delivery);
    return deliver.call(this, delivery);
  });
  onTestFinished(() => spy.mockRestore());
  return {
    away,
    /** Agent and space have crashed since, and begin anew. */
    comeBack: async (): Promise<void> => {
      await abortAllDurableObjects();
      away.now = false;
      vi.setSystemTime(Date.now() + 60_000);
      await runDurableObjectAlarm(space.stub() as never);
    },
    seal: async () => {
      unwrap(await space.stub().update({ kind: "key", workspaceId, keyId: "key" }, { confidential: true }));
      await hasTold(space.id);
    },
    /** The open mind, of so many runs, is told of the switch again. Bob says something, and the compartment alone reads it. */
    goesInside: async (words: string, runs: number) => {
      await ended(workspaceId, agent, runs);
      for (const again of told.filter((each) => each.includes('"openUpTo"'))) {
        unwrap(await env.AGENT.getByName(agent.id).deliver(again));
      }
      model.push(step(text("Thanks.")));
      await space.post(bob, words);
      expect((await ended(workspaceId, mind, 1)).at(-1)?.trigger.text).toBe(words);
      await passTime(agent, replyWaitMs + 1000);
      expect(await ended(workspaceId, agent, runs)).toHaveLength(runs);
      expect(await inboxOf(workspaceId, agent)).toEqual([]);
    },
  };
};

const cards = continuities.flatMap((kind) => (["question", "approval"] as const).map((card) => [kind, card] as const));

test.each(cards)("[C17] the switch withdraws a %s's open %s, and tells it and people why", async (kind, card) => {
  const path = freshPath();
  const tool = card === "question" ? ask : deploy(path, approved());
  const house = await scene({ continuity: kind, tools: [tool], steps: [] });
  const asks = call(tool.name, card === "question" ? { question: "Which day?" } : { to: "prod" });
  const enters = call("enter_space", { spaceId: house.space.id });
  const asking = kind === "timeline" ? [step(asks)] : [step(enters), step(asks), step(text("Asked."))];
  house.model.push(...asking, step(text("Noted.")));
  const { asked, shown, give, bob, model } = house;
  const { seal, goesInside } = inSpace(house);
  await asked(tool.name);
  await seal();
  const withdrawn = await shown(tool.name, "canceled");
  expect(withdrawn.error?.message).toMatch(/^This space became confidential.* ask here again/);
  await model.called(asking.length + 1);
  expect(JSON.stringify(model.calls.at(-1)?.prompt)).toContain("the space became confidential");
  const late = await give(bob, tool.name, card === "question" ? { result: "Falcon day" } : yes);
  expect(late).toMatchObject({ problem: { code: "gone" } });
  await goesInside("Falcon", kind === "timeline" ? 1 : 2);
  expect(await requestsTo(path)).toEqual([]);
});

test("[C17] what people decided before the switch still counts, also where it is told after it", async () => {
  const path = freshPath();
  const steps = [step(call("deploy", { to: "prod" })), step(text("Deployed."))];
  const house = await scene({ tools: [deploy(path, approved())], steps });
  await house.asked("deploy");
  const { away, seal, comeBack } = inSpace(house);
  away.now = true;
  unwrap(await house.give(house.bob, "deploy", yes));
  await seal();
  await comeBack();
  await house.shown("deploy", "complete");
  await house.run("completed");
  expect(await requestsTo(path)).toHaveLength(1);
});

test.each(continuities)("[C17] the switch ends a %s's wait with that reason; answers go inside", async (continuity) => {
  const house = await scene({ continuity, messaging: "threaded", tools: [], steps: [] });
  const asks = call("send_message", { text: "@Ann @Bob which day?", wait: true });
  const enters = call("enter_space", { spaceId: house.space.id });
  house.model.push(continuity === "timeline" ? step(asks) : step(enters, asks), step(text("Noted.")));
  const { space, ann, model } = house;
  const { away, seal, comeBack, goesInside } = inSpace(house);
  await space.post(ann, "Ask us");
  await house.run(continuity === "timeline" ? "waiting_reply" : "completed");
  away.now = true;
  await space.post(ann, "Monday");
  await seal();
  await comeBack();
  await model.called(2);
  const prompt = userTexts(model.calls[1]).join("\n");
  expect(prompt).toContain('"Monday"');
  const silence = continuity === "timeline" ? '"Bob" gave no reply: ' : '[no answer from "Bob": ';
  expect(prompt).toContain(`${silence}the space became confidential`);
  await goesInside("Falcon day", continuity === "timeline" ? 1 : 2);
});

test.each(continuities)("[L1] [L4] a %s is told of an edit inside of what was said before the switch", async (kind) => {
  const house = await scene({ continuity: kind, tools: [], steps: [step(text("Well."))] });
  const { space, agent, ann, model, workspaceId } = house;
  const mind = { ...agent, id: compartmentId(ids, agent.id, space.id) };
  const { id } = await space.post(ann, "@Worker a hundred quinces");
  await house.run("completed");
  await inSpace(house).seal();
  model.push(step(text("Well.")), step(text("Well.")));
  await space.post(ann, "@Worker here now");
  await ended(workspaceId, mind, 1);
  unwrap(await space.stub().editMessage(space.as(ann), id, "@Worker a hundred medlars"));
  await hasTold(space.id);
  const redactions = () => rowsIn(mind, "SELECT words, text FROM redactions");
  const untold = () => rowsIn(agent, "SELECT key FROM jobs WHERE kind = 'redact'");
  await vi.waitFor(async () => expect([await untold(), (await redactions())[0]?.words]).toEqual([[], null]));
  await space.post(ann, "@Worker and now?");
  await ended(workspaceId, mind, 2);
  const input = userTexts(model.calls.at(-1)).join("\n");
  expect(input).toContain(`message ${id} now reads: "@Worker a hundred medlars"`);
  expect(input).not.toContain("was deleted");
});

test("[L1] [C17] an edit since the switch of what no agent had yet wakes none, and is read", async () => {
  const house = await scene({ tools: [], steps: [] });
  const { space, agent, ann, bob, model, workspaceId } = house;
  const { away, comeBack } = inSpace(house);
  const mind = { ...agent, id: compartmentId(ids, agent.id, space.id) };
  away.now = true;
  const { id } = await space.post(ann, "@Worker a hundred quinces");
  unwrap(await space.stub().update({ kind: "key", workspaceId, keyId: "key" }, { confidential: true }));
  unwrap(await space.stub().editMessage(space.as(ann), id, "@Worker a hundred medlars"));
  await comeBack();
  await hasTold(space.id);
  model.push(step(text("Well.")));
  await space.post(bob, "@Worker and now?");
  const runs = await ended(workspaceId, mind, 1);
  expect(runs.map(({ trigger }) => trigger.text)).toEqual(["@Worker and now?"]);
  expect(await ended(workspaceId, agent, 0)).toEqual([]);
  const [input = ""] = userTexts(model.calls[0]);
  expect(input).toContain('"@Worker a hundred medlars"');
  expect(input).not.toContain("quinces");
});
