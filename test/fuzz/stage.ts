import { env } from "cloudflare:workers";
import * as z from "zod";
import { HookScheme } from "../../src/protocol/hook.ts";
import { call, expectOk, type House, ids, openHouse, type Participant } from "../support/house.ts";
import { question } from "../support/question.ts";

/**
 * A workspace with something of everything, and a neighbour that must not be reached. Inputs name its things by marks
 * (`@spc0@`), so that an input means the same on every stage.
 */
export type Stage = {
  house: House;
  /** By whom a request may come. */
  bearers: Record<string, string>;
  marks: Record<string, string>;
  /** A refused input must not change these. */
  objects: { name: string; stub: DurableObjectStub; tables: Record<string, string> }[];
};

const stubOf = (namespace: unknown, id: string): DurableObjectStub =>
  (namespace as DurableObjectNamespace).getByName(id);

/** Columns in which a person could see a change; not timers, attempts and cursors, which change alone. */
const tables = {
  workspace: {
    workspace: "*",
    entities: "*",
    keys: "*",
    secrets: "*",
    spaces: "id, name, wake_policy, share_origin, deleted",
    memberships: "*",
    requests: "principal, key, status",
  },
  space: { space: "*", log: "count(*), max(seq)", members: "entity_id, name", tool_calls: "*" },
  agent: {
    agent: "config, secrets",
    spaces: "id, left",
    inbox: "event_id",
    memories: "*",
    goals: "*",
    plans: "*",
    hooks: "*",
    calls: "*",
  },
};

const tool = (name: string): object => ({ name, description: "Does it", executionType: "internal" });

const model = { provider: "rehearsal", deltasPerSecond: 0 };
const OneHook = z.object({ hookId: z.string(), secret: z.string() });

const hookOf = async (house: House, agentId: string, body: object): Promise<{ id: string; secret: string }> => {
  const made = await expectOk(OneHook, call(`/v1/agents/${agentId}/hooks`, { bearer: house.secretKey, body }));
  return { id: made.hookId, secret: made.secret };
};

type HookSettings = { name: string; header?: string; [more: string]: unknown };

/** At least one of every scheme: a new one fails the types. */
const hooksOf: Record<HookScheme, HookSettings[]> = {
  standard: [{ name: "monitor", template: "{{event}}: {{payload.a.0.b}} {{payload}}" }],
  github: [{ name: "github", events: ["issues", "push"] }],
  header: [
    { name: "alarm", idHeader: "x-id", eventHeader: "x-event" },
    { name: "plain", header: "Authorization" },
  ],
};

export const hookBodies: (HookSettings & { scheme: HookScheme })[] = HookScheme.options.flatMap((scheme) =>
  hooksOf[scheme].map((body) => ({ scheme, ...body })),
);

export const openStage = async (adminKey: string): Promise<Stage> => {
  const [house, other] = await Promise.all([openHouse("Here"), openHouse("Elsewhere")]);
  const [mona, sara, boss, stranger]: Participant[] = [
    await house.person("Mona"),
    await house.person("Sara"),
    await house.person("Boss", "admin"),
    await house.person("Stranger"),
  ];
  const foreigner = await other.person("Foreigner", "admin");
  if (!mona || !sara || !boss || !stranger) throw new Error("the stage has its people");
  const living = await house.agent({ name: "Analyst", model, tools: [tool("tool_a"), tool("tool_b")] });
  const timed = await house.agent({ name: "Clerk", model, continuity: "timeline", messaging: "threaded" });
  const members = [mona, sara, living, timed];
  const settings = { wakePolicy: "addressed" };
  const [kitchen, hall] = [
    await house.space("Kitchen", members, settings),
    await house.space("Hall", [mona, living], settings),
  ];
  const elsewhere = await other.space("Elsewhere", [foreigner]);
  const [said, foreign] = [
    await house.say(kitchen.id, mona, "Read me"),
    await other.say(elsewhere.id, foreigner, "Not yours"),
  ];
  const later = await house.say(hall.id, mona, "And me");
  const asked = await question(house.workspaceId, kitchen.id, living.id);
  const hooks = await Promise.all(hookBodies.map((body) => hookOf(house, living.id, body)));
  await call("/v1/workspace/secrets/a-name", { method: "PUT", bearer: house.secretKey, body: { value: "v" } });
  const key = z.object({ key: z.object({ id: z.string() }) });
  const spare = await expectOk(key, call("/v1/workspace/keys", { method: "POST", bearer: house.secretKey }));
  const put = (path: string, body: object): Promise<unknown> =>
    expectOk(z.unknown(), call(`/v1/agents/${living.id}/${path}`, { method: "PUT", bearer: house.secretKey, body }));
  await put("memories/a-name", { value: "green" });
  await put("goals/a-name", { description: "Finish" });
  await put("plans/a-name", { name: "Report", instruction: "Report", runAfter: "2 hours" });
  return {
    house,
    bearers: {
      key: house.secretKey,
      mona: mona.token,
      boss: boss.token,
      stranger: stranger.token,
      otherKey: other.secretKey,
      foreigner: foreigner.token,
      operator: adminKey,
    },
    marks: {
      wsp: house.workspaceId,
      ent0: mona.id,
      ent1: sara.id,
      ent2: stranger.id,
      ent3: boss.id,
      agent0: living.id,
      agent1: timed.id,
      spc0: kitchen.id,
      spc1: hall.id,
      msg0: said.id,
      msg1: later.id,
      asked0: asked,
      tc0: ids.mintOwned("tc", living.id),
      approval0: ids.mintOwned("tc", timed.id),
      run0: ids.mintOwned("run", living.id),
      evt0: ids.mintOwned("evt", living.id),
      key0: spare.key.id,
      hook0: hooks[0]?.id ?? "",
      hook1: hooks[1]?.id ?? "",
      hook2: hooks[2]?.id ?? "",
      hook3: hooks[3]?.id ?? "",
      secret0: hooks[0]?.secret ?? "",
      secret1: hooks[1]?.secret ?? "",
      secret2: hooks[2]?.secret ?? "",
      secret3: hooks[3]?.secret ?? "",
      otherEnt: foreigner.id,
      otherSpc: elsewhere.id,
      otherMsg: foreign.id,
      never: ids.mint("spc"),
      neverEnt: ids.mint("ent"),
    },
    objects: [
      { name: "workspace", stub: stubOf(env.WORKSPACE, house.workspaceId), tables: tables.workspace },
      { name: "neighbour", stub: stubOf(env.WORKSPACE, other.workspaceId), tables: tables.workspace },
      { name: "kitchen", stub: stubOf(env.SPACE, kitchen.id), tables: tables.space },
      { name: "hall", stub: stubOf(env.SPACE, hall.id), tables: tables.space },
      { name: "elsewhere", stub: stubOf(env.SPACE, elsewhere.id), tables: tables.space },
      { name: "living", stub: stubOf(env.AGENT, living.id), tables: tables.agent },
      { name: "timed", stub: stubOf(env.AGENT, timed.id), tables: tables.agent },
    ],
  };
};

/** A text with the stage's own ids and secrets in place of its marks. */
export const marked = (text: string, { marks }: Stage): string =>
  text.replaceAll(/@([a-z]+\d?|other[A-Z][a-z]+|neverEnt)@/g, (whole, name: string) => marks[name] ?? whole);
