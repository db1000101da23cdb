import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { AgentConfig } from "../../../src/protocol/agent.ts";
import { SearchQuery } from "../../../src/protocol/search.ts";
import { unwrap } from "../../../src/shared/errors.ts";
import { armFault, disarmFaults, type FaultPoint } from "../../../src/shared/fault.ts";
import { rowsWith } from "../../support/rows.ts";
import { answer, call, step, text } from "../../support/scripted-model.ts";
import { openBoth, openCompartment } from "../compartment.ts";
import { agentStub, ended, openScene, rowsIn, scripted, told, userTexts } from "../fixture.ts";

/** What an agent keeps of a space that was deleted. */
afterEach(disarmFaults);

type Scene = Awaited<ReturnType<typeof openScene>>;

const objectsOf = ({ analyst, space, house }: Scene): DurableObjectStub[] => {
  const stubs = [agentStub(analyst), env.SPACE.getByName(space.id), env.WORKSPACE.getByName(house.workspaceId)];
  return stubs as unknown as DurableObjectStub[];
};

const deleteSpace = async (scene: Scene) => unwrap(await scene.space.stub().remove(scene.house.key));

/** No row of the agent, the space and the workspace holds one of these. */
const gone = (scene: Scene, marked: string[], timeout = 5000): Promise<void> =>
  vi.waitFor(
    async () => {
      for (const object of objectsOf(scene)) {
        for (const each of marked) expect(await rowsWith(object, each)).toEqual([]);
      }
    },
    { timeout },
  );

describe.each(["consciousness", "timeline"] as const)("%s", (continuity) => {
  test("[L13] a deleted space is gone from every row of its agents, with its name", async () => {
    const scene = await openScene({ continuity });
    const { husam, house, analyst, agent } = scene;
    const space = await house.space("Xylophone", [husam, analyst]);
    const other = await house.space("Kept", [husam, analyst]);
    const model = scripted([
      step(call("enter_space", { spaceId: space.id })),
      step(call("read_messages", { limit: 5 })),
      ...answer(space.id, "A fine orchard of medlars."),
      ...answer(other.id, "The damsons are kept."),
    ]);
    await space.post(husam, "I like the quinces of the old orchard");
    await ended(house.workspaceId, analyst, 1);
    await other.post(husam, "I like the apricots of the south");
    await ended(house.workspaceId, analyst, 2);
    model.push(step(text("Well.")));
    await space.post(husam, "zebu");
    await ended(house.workspaceId, analyst, 3);
    const mine = { ...scene, space };
    await deleteSpace(mine);
    await gone(mine, ["quinces", "medlars", "zebu", "Xylophone"]);
    for (const kept of ["apricots of the south", "The damsons are kept."]) {
      expect(await rowsWith(agentStub(analyst), kept)).not.toEqual([]);
    }
    model.push(step(text("Well.")));
    await other.post(husam, "And now?");
    await ended(house.workspaceId, analyst, 4);
    const input = userTexts(model.calls.at(-1)).join("\n");
    const shown = [input, JSON.stringify(unwrap(await agent.context(house.workspaceId)))].join();
    for (const word of ["quinces", "medlars", "zebu", "Xylophone"]) expect(shown).not.toContain(word);
  });

  test("[L13] who repeats others in an own space and deletes that takes nothing out elsewhere", async () => {
    const scene = await openScene({ continuity });
    const { space, husam, house, analyst } = scene;
    const mallory = await house.person("Mallory");
    const mine = await house.space("Mine", [mallory, analyst]);
    const model = scripted([step(text("One.")), step(text("Two."))]);
    await space.post(husam, "I approve the quinces of the old orchard");
    await ended(house.workspaceId, analyst, 1);
    await mine.post(mallory, "I approve the quinces of the old orchard, and zebus");
    await ended(house.workspaceId, analyst, 2);
    await deleteSpace({ ...scene, space: mine });
    await gone({ ...scene, space: mine }, ["and zebus"]);
    model.push(step(text("Well.")));
    await space.post(husam, "And now?");
    await ended(house.workspaceId, analyst, 3);
    const lines = userTexts(model.calls.at(-1)).join("\n").split("\n");
    expect(lines.some((line) => line.includes('"I approve the quinces of the old orchard"'))).toBe(true);
    const found = await scene.agent.search(house.workspaceId, SearchQuery.parse({ query: "quinces", mode: "fts" }));
    expect(unwrap(found).items).toHaveLength(1);
  });

  test("[L13] an agent that left before the deletion forgets the space too", async () => {
    const scene = await openScene({ continuity });
    const { space, husam, house, analyst } = scene;
    scripted(answer(space.id, "Fine."));
    await space.post(husam, "I like the quinces of the old orchard");
    await ended(house.workspaceId, analyst, 1);
    unwrap(await space.stub().removeMember(scene.house.key, analyst.id));
    await told(space.id);
    await deleteSpace(scene);
    await gone(scene, ["quinces", "Alpha"]);
  });
});

test.each<[FaultPoint, number]>([
  ["space.after-deliver", 0],
  ["space.after-deliver", 1],
  ["space.after-deliver", 2],
  ["agent.after-deliver", 0],
])("[L13] a deleted space is gone though a crash comes: %s after %i", async (point, passes) => {
  const scene = await openScene();
  const { space, husam, house, analyst } = scene;
  const model = scripted();
  for (let count = 1; count <= 3; count += 1) {
    model.push(step(text("Well.")));
    await space.post(husam, `I like the quinces of the old orchard, ${count}`);
    await ended(house.workspaceId, analyst, count);
  }
  const crashed = armFault(point, passes);
  await deleteSpace(scene).catch(() => undefined);
  await crashed;
  await gone(scene, ["quinces", "Alpha"], 15_000);
});

test("[L13] a compartment forgets what it was fed of a deleted space, its own ends", async () => {
  const scene = await openBoth({});
  const { space, husam, house, analyst, secret } = scene;
  const third = await openCompartment(scene, "Council");
  const model = scripted(answer(space.id, "Fine."));
  const message = await space.post(husam, "I like the quinces of the old orchard");
  await ended(house.workspaceId, analyst, 1);
  model.push(step(text("Well.")), step(text("Well.")));
  await secret.ask("What do you know?", 1);
  await third.ask("The medlars are a secret of the council", 1);
  const [fed, ends] = [agentStub(secret.mind), agentStub(third.mind)];
  expect(await rowsWith(fed, "quinces")).not.toEqual([]);
  unwrap(await space.stub().editMessage(space.as(husam), message.id, "I like the sorrels of the old orchard"));
  await vi.waitFor(async () => expect(await rowsWith(fed, "sorrels")).not.toEqual([]));
  await deleteSpace(scene);
  await deleteSpace({ ...scene, space: third.space });
  await gone(scene, ["quinces", "sorrels", "medlars"]);
  await vi.waitFor(async () => {
    for (const word of ["quinces", "sorrels"]) expect(await rowsWith(fed, word)).toEqual([]);
    expect(await rowsWith(ends, "medlars")).toEqual([]);
  });
});

test("[L13] a deleted confidential space is gone from the list of calls that wait for servers", async () => {
  const order = { name: "order", description: "Orders", executionType: "external", confidential: "allowed" };
  const scene = await openBoth(AgentConfig.parse({ name: "Analyst", continuity: "timeline", tools: [order] }));
  const { house, secret } = scene;
  scripted([step(call("order", { what: "the medlars of the council" })), step(text("Well."))]);
  await secret.tell("Order them");
  const listed = () => env.WORKSPACE.getByName(house.workspaceId).toolCalls({ limit: 9 });
  await vi.waitFor(async () => expect(unwrap(await listed()).items).toHaveLength(1));
  await deleteSpace({ ...scene, space: secret.space });
  await gone({ ...scene, space: secret.space }, ["medlars"]);
});

test("[L13] who makes a space, repeats words and deletes it takes none out that the agent had", async () => {
  const scene = await openScene();
  const { husam, house, analyst, agent } = scene;
  const memory = "Our quinces of the old orchard are ripe";
  unwrap(await agent.putMemory(house.workspaceId, "orchard", memory));
  await runInDurableObject(agentStub(analyst), (_, { storage }) => {
    storage.sql.exec("update memories set updated_at = updated_at - 3600000");
  });
  const space = await house.space("Trap", [husam, analyst]);
  scripted([step(text("Well."))]);
  await space.post(husam, memory);
  await ended(house.workspaceId, analyst, 1);
  await deleteSpace({ ...scene, space });
  await gone({ ...scene, space }, ["Trap"]);
  expect(unwrap(await agent.memories(house.workspaceId))).toMatchObject([{ value: memory }]);
});

test.each([
  ["more than 500 events", 510, 1],
  ["more than 64 KiB of words", 9, 10_000],
])("[L13] a deleted space with %s is forgotten to its last word", async (_, count, length) => {
  const scene = await openScene();
  const { husam, house, analyst } = scene;
  const space = await house.space("Xylophone", [husam]);
  const principal = space.as(husam);
  for (let index = 0; index < count; index += 1) {
    unwrap(await space.stub().post(principal, { text: `${index} `.padEnd(length, "-") }));
  }
  unwrap(await space.stub().addMember(scene.house.key, analyst));
  scripted([step(text("Well."))]);
  await space.post(husam, "I like the quinces of the old orchard");
  await ended(house.workspaceId, analyst, 1);
  const mine = { ...scene, space };
  await deleteSpace(mine);
  await gone(mine, ["quinces", "Xylophone"], 10_000);
});

test("[L13] each name that a deleted confidential space had is gone from the open mind", async () => {
  const scene = await openScene();
  const { husam, house, analyst, ask } = scene;
  const names = ["Xylophone", "Marimba", "Celesta"];
  const space = await house.space("Xylophone", [husam, analyst], true);
  scripted(() => step(text("Well.")));
  for (const [index, name] of names.entries()) {
    unwrap(await space.stub().update(house.key, { name }));
    await told(space.id);
    await ask("Hello", index + 1);
    expect(await rowsWith(agentStub(analyst), name)).not.toEqual([]);
  }
  await deleteSpace({ ...scene, space });
  await gone({ ...scene, space }, names);
});

test.each(["Xylophone", "Tea · Rum", "Xylophone · Celesta"])(
  "[L13] the deleted space %s is gone from what search knows of an archival entry",
  async (name) => {
    const scene = await openScene();
    const { husam, house, analyst, agent } = scene;
    const space = await house.space(name, [husam, analyst]);
    const recall = call("recall", { op: "insert", content: "Tea is kept.", metadata: { about: "tea" } });
    scripted([step(call("enter_space", { spaceId: space.id })), step(recall), step(text("Well."))]);
    await space.post(husam, "Hello");
    await ended(house.workspaceId, analyst, 1);
    unwrap(await agent.search(house.workspaceId, SearchQuery.parse({ query: "tea", mode: "fts" })));
    const heads = () => rowsIn(analyst, "SELECT head FROM search_entries WHERE type = 'archival'");
    expect(await heads()).toMatchObject([{ head: expect.stringContaining(`Husam · ${name}`) }]);
    await deleteSpace({ ...scene, space });
    await gone({ ...scene, space }, [name]);
    expect(await heads()).toMatchObject([{ head: expect.stringContaining('{"about":"tea"} · Husam · [deleted] · ') }]);
  },
);

test("[L13] a deleted confidential space's names of its later parts are gone, however old", async () => {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() - 3_600_000 });
  onTestFinished(() => void vi.useRealTimers());
  const scene = await openScene();
  const { husam, house, analyst, ask } = scene;
  const space = await house.space("Xylophone", [husam], true);
  const principal = space.as(husam);
  for (let index = 0; index < 510; index += 1) unwrap(await space.stub().post(principal, { text: String(index) }));
  unwrap(await space.stub().addMember(house.key, analyst));
  scripted(() => step(text("Well.")));
  for (const [index, name] of ["Marimba", "Celesta"].entries()) {
    unwrap(await space.stub().update(house.key, { name }));
    await told(space.id);
    await ask("Hello", index + 1);
    expect(await rowsWith(agentStub(analyst), name)).not.toEqual([]);
  }
  vi.useRealTimers();
  await deleteSpace({ ...scene, space });
  await gone({ ...scene, space }, ["Xylophone", "Marimba", "Celesta"], 10_000);
});
