import { env } from "cloudflare:workers";
import { afterEach, describe, expect, test, vi } from "vitest";
import { Agent } from "../../src/agent/agent.ts";
import { maxVersionsTakenBack } from "../../src/agent/bounds.ts";
import { CreateBlock } from "../../src/protocol/block.ts";
import type { Erasure, ErasureKind } from "../../src/protocol/erasure.ts";
import { refuse, unwrap } from "../../src/shared/errors.ts";
import { armFault, disarmFaults, type FaultPoint } from "../../src/shared/fault.ts";
import { maxErasedRows } from "../../src/space/bounds.ts";
import { Space } from "../../src/space/space.ts";
import { maxErasuresAtOnce } from "../../src/workspace/bounds.ts";
import { openBoth } from "../agent/compartment.ts";
import { agentStub, ended, ids, openScene, scripted, told } from "../agent/fixture.ts";
import { createGate } from "../support/gate.ts";
import { rowsWith } from "../support/rows.ts";
import { answer, apiError, call, refusal, step, text } from "../support/scripted-model.ts";

/** What an erasure leaves of a person or a space. */
afterEach(() => {
  disarmFaults();
  vi.restoreAllMocks();
});

type Scene = Awaited<ReturnType<typeof openScene>>;

const key = { id: "key" };
const workspaceAt = (workspaceId: string) => env.WORKSPACE.getByName(workspaceId);
const agentAt = ({ id }: { id: string }) => env.AGENT.getByName(id);
const erase = async ({ house }: Pick<Scene, "house">, kind: ErasureKind, id: string): Promise<Erasure> =>
  unwrap(await workspaceAt(house.workspaceId).beginErasure({ kind, id }, key));

const done = ({ house }: Pick<Scene, "house">, id: string, timeout = 8000): Promise<Erasure> =>
  vi.waitFor(
    async () => {
      const erasure = unwrap(await workspaceAt(house.workspaceId).erasure(id));
      expect(erasure).toMatchObject({ state: "done", left: 0, waiting: [] });
      return erasure;
    },
    { timeout },
  );

const goneFrom = async (objects: unknown[], marked: string[]): Promise<void> => {
  for (const object of objects) for (const each of marked) expect(await rowsWith(object, each)).toEqual([]);
};

const objectsOf = ({ house, analyst, space }: Pick<Scene, "house" | "analyst" | "space">): unknown[] => [
  agentStub(analyst),
  env.SPACE.getByName(space.id),
  workspaceAt(house.workspaceId),
];

describe.each(["consciousness", "timeline"] as const)("%s", (continuity) => {
  test("[L16] an erased person is gone from every row: words, names, and what waits", async () => {
    const scene = await openScene({ continuity });
    const { house, analyst, space } = scene;
    const mona = await house.person("Mona");
    const other = await house.space("Beta", [mona, scene.husam, analyst]);
    const model = scripted([
      step(call("enter_space", { spaceId: other.id })),
      step(call("read_messages", { limit: 5 })),
      ...answer(other.id, "A fine orchard."),
    ]);
    await other.post(mona, "I like the quinces of the old orchard");
    await ended(house.workspaceId, analyst, 1);
    model.push(step(text("Well.")));
    await other.post(mona, "zebu");
    await ended(house.workspaceId, analyst, 2);
    model.push(step(text("Well.")));
    await scene.ask("The apricots of the south are kept", 3);
    await erase(scene, "person", mona.id);
    const report = await done(scene, mona.id);
    expect(report.objects).toBe(4);
    await goneFrom([...objectsOf(scene), env.SPACE.getByName(other.id)], ["quinces", "zebu", "Mona"]);
    const left = (await other.messages()).map(({ text: words, deleted, sender }) => ({ words, deleted, sender }));
    expect(left[0]).toMatchObject({ sender: { id: mona.id, name: "[erased]" }, deleted: {} });
    expect(left[0]?.words).toBeUndefined();
    for (const kept of ["apricots of the south", "A fine orchard."]) {
      expect(await rowsWith(agentStub(analyst), kept)).not.toEqual([]);
    }
    model.push(step(text("Well.")));
    await space.post(scene.husam, "And now?");
    await ended(house.workspaceId, analyst, 4);
    const shown = JSON.stringify(model.calls.at(-1)?.prompt);
    for (const word of ["quinces", "zebu", "Mona"]) expect(shown).not.toContain(word);
  });
});

describe("a crash", () => {
  test.each<[FaultPoint, number]>([
    ["workspace.before-tell", 0],
    ["workspace.before-tell", 3],
    ["workspace.after-tell", 0],
    ["workspace.after-tell", 1],
    ["workspace.after-tell", 4],
    ["space.after-append", 0],
    ["space.after-deliver", 0],
    ["agent.after-deliver", 0],
  ])("[L16] an erasure counts each object once despite a crash: %s after %i", async (point, passes) => {
    const scene = await openScene();
    const { house, analyst, space } = scene;
    const mona = await house.person("Mona");
    const other = await house.space("Beta", [mona, analyst]);
    const model = scripted([step(text("Well."))]);
    await other.post(mona, "I like the quinces of the old orchard");
    await ended(house.workspaceId, analyst, 1);
    model.push(step(text("Well.")));
    await told(other.id);
    const crashed = armFault(point, passes);
    await erase(scene, "person", mona.id);
    await crashed;
    const report = await done(scene, mona.id, 20_000);
    // Two spaces, the agent, and the workspace.
    expect(report.objects).toBe(4);
    // The coming, the message and the leaving; two rows of the agent by words and by name; the workspace's own.
    expect(report.rows).toBe(8);
    await goneFrom([...objectsOf({ ...scene, space }), env.SPACE.getByName(other.id)], ["quinces", "Mona"]);
  });
});

test("[L16] an erasure goes through one space after another, so that others post meanwhile", async () => {
  const scene = await openScene();
  const { house, husam } = scene;
  const mona = await house.person("Mona");
  // Where each ends tells whose go it is.
  for (const [name, more] of [["Beta", 1] as const, ["Gamma", 2] as const]) {
    const space = await house.space(name, [mona, husam]);
    for (let said = 0; said < maxErasedRows + more; said += 1) await space.post(mona, `quinces ${said}`);
  }
  const goes: (number | undefined)[] = [];
  const { erase: go } = Space.prototype;
  vi.spyOn(Space.prototype, "erase").mockImplementation(async function (this: Space, ...asked) {
    const told = await go.apply(this, asked);
    if (told.ok && told.value.rows > 0) goes.push(told.value.upTo);
    return told;
  });
  await erase(scene, "person", mona.id);
  await done(scene, mona.id);
  const [first, , second] = goes;
  expect(first).not.toBe(second);
  expect(goes).toEqual([first, first, second, second]);
});

test("[L16] what an erased person edited is gone in its last words too", async () => {
  const scene = await openScene();
  const { house, analyst, space } = scene;
  const mona = await house.person("Mona");
  const other = await house.space("Beta", [mona, scene.husam, analyst]);
  const model = scripted(answer(other.id, "Fine."));
  const message = await other.post(mona, "I like the quinces of the old orchard");
  await ended(house.workspaceId, analyst, 1);
  unwrap(await other.stub().editMessage(other.as(mona), message.id, "I like the medlars of the new garden"));
  await told(other.id);
  await erase(scene, "person", mona.id);
  await done(scene, mona.id);
  await goneFrom([...objectsOf(scene), env.SPACE.getByName(other.id)], ["quinces", "medlars", "Mona"]);
  model.push(step(text("Well.")));
  await space.post(scene.husam, "And now?");
  await ended(house.workspaceId, analyst, 2);
  expect(JSON.stringify(model.calls.at(-1)?.prompt)).not.toContain("medlars");
});

test("[L16] a space made during an erasure is erased too, and each object counted once", async () => {
  const scene = await openScene();
  const { house, analyst } = scene;
  const mona = await house.person("Mona");
  scripted([step(text("Well.")), step(text("Well."))]);
  const other = await house.space("Beta", [mona, analyst]);
  await other.post(mona, "I like the quinces of the old orchard");
  await ended(house.workspaceId, analyst, 1);
  await erase(scene, "person", mona.id);
  const first = await done(scene, mona.id);
  const late = await house.space("Late", [mona, scene.husam]);
  const again = await vi.waitFor(async () => {
    const report = await done(scene, mona.id);
    expect(report.completedAt).not.toBe(first.completedAt);
    return report;
  });
  // Of the late space, beside itself: the coming of Mona, and her leaving.
  expect([again.objects, again.rows]).toEqual([first.objects + 1, first.rows + 2]);
  await goneFrom([env.SPACE.getByName(late.id)], ["Mona"]);
});

describe("who comes in during an erasure", () => {
  /** Answers once the erasure, which was done, is done once more. */
  const doneAgain = (scene: Scene, id: string, { completedAt }: Erasure): Promise<Erasure> =>
    vi.waitFor(
      async () => {
        const erasure = await done(scene, id);
        expect(erasure.completedAt).not.toBe(completedAt);
        return erasure;
      },
      { timeout: 20_000 },
    );

  test("[L16] agents that are done look again for who is named in a space made meanwhile", async () => {
    const scene = await openScene();
    const { house, analyst, husam } = scene;
    const mona = await house.person("Mona");
    scripted([step(text("Well."))]);
    await erase(scene, "person", mona.id);
    const first = await done(scene, mona.id);
    // Until the agent has had a run there, the space does not let her go.
    const later = vi.fn(async () => refuse("unavailable", "later"));
    const held = [
      vi.spyOn(Space.prototype, "removeMember").mockImplementation(later),
      vi.spyOn(Space.prototype, "erase").mockImplementation(later),
    ];
    const late = await house.space("Late", [mona, husam, analyst]);
    await late.post(husam, "And now?");
    await ended(house.workspaceId, analyst, 1);
    expect(await rowsWith(agentStub(analyst), "Mona")).not.toEqual([]);
    for (const each of held) each.mockRestore();
    await doneAgain(scene, mona.id, first);
    await goneFrom([agentStub(analyst), env.SPACE.getByName(late.id)], ["Mona"]);
  });

  test("[L16] who is added to a space that was visited is erased there once more", async () => {
    const scene = await openScene();
    const { house, space } = scene;
    const mona = await house.person("Mona");
    const other = await house.space("Beta", [mona, scene.husam]);
    await erase(scene, "person", mona.id);
    let report = await done(scene, mona.id);
    for (const { id, stub } of [space, other]) {
      unwrap(await stub().addMember(house.key, mona));
      report = await doneAgain(scene, mona.id, report);
      await goneFrom([env.SPACE.getByName(id)], ["Mona"]);
    }
  });
});

test("[L16] a delivery under way as a space lets an erased person go brings no name back", async () => {
  const scene = await openScene();
  const { house, analyst, husam } = scene;
  const mona = await house.person("Mona");
  const other = await house.space("Beta", [husam, analyst]);
  await told(other.id);
  const gates = [createGate(), createGate()] as const;
  const { deliver } = Agent.prototype;
  const held = vi.spyOn(Agent.prototype, "deliver").mockImplementation(async function (this: Agent, delivery) {
    const gate = delivery.includes(other.id) ? gates[held.mock.calls.length - 1] : undefined;
    gate?.reach();
    await gate?.opened;
    return deliver.call(this, delivery);
  });
  const asked = vi.spyOn(Space.prototype, "erase");
  unwrap(await other.stub().addMember(house.key, mona));
  await gates[0].reached;
  await erase(scene, "person", mona.id);
  // The space is asked until it says that it has let her go.
  await vi.waitUntil(async () => {
    const { state } = unwrap(await workspaceAt(house.workspaceId).erasure(mona.id));
    return state === "done" || asked.mock.calls.length > 6;
  }, 8000);
  gates[0].open();
  await gates[1].reached;
  scripted([step(call("enter_space", { spaceId: other.id })), step(text("Well."))]);
  await scene.ask("Who is in Beta?");
  gates[1].open();
  await done(scene, mona.id);
  await goneFrom([agentStub(analyst), env.SPACE.getByName(other.id)], ["Mona"]);
});

test("[L16] an erasure is over once spaces that were told an origin's words have let them go", async () => {
  const scene = await openScene({ continuity: "timeline" });
  const { house, analyst, space } = scene;
  const mona = await house.person("Mona");
  const other = await house.space("Beta", [mona, analyst]);
  unwrap(await other.stub().update(house.key, { shareOrigin: "text" }));
  await told(other.id);
  scripted(answer(space.id, "Mona has news."));
  await other.post(mona, "Tell them of the quinces");
  await ended(house.workspaceId, analyst, 1);
  expect(await rowsWith(env.SPACE.getByName(space.id), "quinces")).not.toEqual([]);
  const gate = createGate();
  const { forgetOrigin } = Space.prototype;
  vi.spyOn(Space.prototype, "forgetOrigin").mockImplementationOnce(async function (this: Space, ...given) {
    gate.reach();
    await gate.opened;
    return forgetOrigin.apply(this, given);
  });
  const asked = vi.spyOn(Space.prototype, "erase");
  await erase(scene, "person", mona.id);
  await gate.reached;
  asked.mockClear();
  const state = async () => unwrap(await workspaceAt(house.workspaceId).erasure(mona.id)).state;
  await vi.waitUntil(async () => (await state()) === "done" || asked.mock.calls.length > 3, 8000);
  expect(await state()).toBe("running");
  gate.open();
  await done(scene, mona.id);
  await goneFrom([env.SPACE.getByName(space.id)], ["quinces"]);
});

test("[L16] an erasure waits for a deleted space that its agents have not forgotten yet", async () => {
  const scene = await openScene();
  const { house, husam, analyst } = scene;
  const mona = await house.person("Mona");
  scripted([step(text("Well."))]);
  const other = await house.space("Beta", [mona, husam, analyst]);
  await other.post(mona, "I like the quinces of the old orchard");
  await ended(house.workspaceId, analyst, 1);
  const { forgetSpace } = Agent.prototype;
  const gate = createGate();
  vi.spyOn(Agent.prototype, "forgetSpace").mockImplementation(async function (this: Agent, ...given) {
    if (given[1] === other.id) gate.reach();
    if (given[1] === other.id) await gate.opened;
    return forgetSpace.apply(this, given);
  });
  unwrap(await other.stub().remove(house.key));
  await gate.reached;
  await erase(scene, "person", mona.id);
  const asked = vi.spyOn(Space.prototype, "erase");
  const state = async () => unwrap(await workspaceAt(house.workspaceId).erasure(mona.id)).state;
  await vi.waitUntil(async () => (await state()) === "done" || asked.mock.calls.length > 4, 8000);
  expect(await state()).toBe("running");
  gate.open();
  await done(scene, mona.id);
  await goneFrom([env.SPACE.getByName(other.id)], ["quinces", "Mona"]);
});

test("[L16] the erasure of a workspace waits for deleted spaces that agents have not forgotten", async () => {
  const scene = await openScene();
  const { house, husam, analyst } = scene;
  scripted([step(text("Well."))]);
  const other = await house.space("Beta", [husam, analyst]);
  await other.post(husam, "I like the quinces of the old orchard");
  await ended(house.workspaceId, analyst, 1);
  const { forgetSpace } = Agent.prototype;
  const gate = createGate();
  vi.spyOn(Agent.prototype, "forgetSpace").mockImplementation(async function (this: Agent, ...given) {
    if (given[1] === other.id) gate.reach();
    if (given[1] === other.id) await gate.opened;
    return forgetSpace.apply(this, given);
  });
  unwrap(await other.stub().remove(house.key));
  await gate.reached;
  await erase(scene, "workspace", house.workspaceId);
  const asked = vi.spyOn(Space.prototype, "erase");
  const state = async () => unwrap(await workspaceAt(house.workspaceId).erasure(house.workspaceId)).state;
  await vi.waitUntil(async () => (await state()) === "done" || asked.mock.calls.length > 4, 8000);
  expect(await state()).toBe("running");
  gate.open();
  await done(scene, house.workspaceId);
  await goneFrom([env.SPACE.getByName(other.id)], ["quinces", "Husam", "Beta"]);
});

test("[L16] an erasure visits agents that are being deleted, or erased, and have not ended yet", async () => {
  const scene = await openScene();
  const { house, analyst } = scene;
  const mona = await house.person("Mona");
  const reader = await house.agent({ name: "Reader" });
  scripted([step(text("Well.")), step(text("Well."))]);
  const other = await house.space("Beta", [mona, analyst, reader]);
  await other.post(mona, "I like the quinces of the old orchard");
  for (const each of [analyst, reader]) await ended(house.workspaceId, each, 1);
  const out = refuse("unavailable", "out of reach");
  const ends = vi.spyOn(Agent.prototype, "remove").mockResolvedValue(out);
  vi.spyOn(Agent.prototype, "takeBackBlocks").mockResolvedValue(out);
  unwrap(await workspaceAt(house.workspaceId).removeEntity(analyst.id));
  await erase(scene, "agent", reader.id);
  await erase(scene, "person", mona.id);
  await done(scene, mona.id);
  await goneFrom([agentStub(analyst), agentStub(reader)], ["quinces", "Mona"]);
  ends.mockRestore();
});

test("[L16] [L6] an erasure ends in a suspended workspace, though a router has not decided", async () => {
  const scene = await openScene();
  const { house, husam, space, analyst } = scene;
  const mona = await house.person("Mona");
  unwrap(await space.stub().addMember(house.key, mona));
  const router = { model: { provider: "rehearsal" as const, deltasPerSecond: 0 }, maxTokensPerDay: 200_000 };
  unwrap(await space.stub().update(house.key, { wakePolicy: "addressed", router }));
  const model = scripted(() => refusal(apiError(503)));
  await space.post(mona, "I like the quinces of the old orchard");
  const { id } = await space.post(husam, "Who likes the medlars?");
  await vi.waitFor(() => expect(model.calls.length).toBeGreaterThan(0));
  unwrap(await workspaceAt(house.workspaceId).suspend("Unpaid"));
  await told(space.id);
  await erase(scene, "person", mona.id);
  await done(scene, mona.id);
  await goneFrom(objectsOf(scene), ["quinces", "Mona"]);
  expect(unwrap(await space.stub().routing(house.key, id))).toMatchObject({ error: { code: "suspended" } });
  expect(await rowsWith(agentStub(analyst), "medlars")).not.toEqual([]);
});

test("[L16] an erased agent takes its messages, its name, and what its readers were given", async () => {
  const scene = await openScene();
  const { house, analyst, space, husam, agent } = scene;
  const writer = await house.agent({ name: "Quillfeather" });
  const { workspaceId } = house;
  const other = await house.space("Beta", [husam, writer]);
  const owner = env.AGENT.getByName(writer.id);
  const content = "The medlars ripen late in the walled garden";
  unwrap(await owner.createBlock(workspaceId, CreateBlock.parse({ label: "garden", type: "core", content }), "system"));
  unwrap(await owner.shareBlock(workspaceId, "garden", { granteeId: analyst.id, permission: "Human" }));
  const model = scripted();
  const asked = call("block_edit", { label: "garden", operations: [{ op: "append_text", text: "!" }] });
  model.push(step(call("enter_space", { spaceId: space.id })), step(asked), step(text("Well.")));
  model.push(...answer(other.id, "Damsons grow on the northern slope."));
  await space.post(husam, "What do you know?");
  await ended(workspaceId, analyst, 1);
  expect(await rowsWith(agentStub(analyst), "walled garden")).not.toEqual([]);
  await vi.waitFor(async () => expect(await rowsWith(env.SPACE.getByName(space.id), writer.id)).not.toEqual([]));
  await other.post(husam, "What grows there?");
  await ended(workspaceId, writer, 1);
  await erase(scene, "agent", writer.id);
  const { unknown } = await done(scene, writer.id);
  expect(unknown[1]).toContain(`newest ${maxVersionsTakenBack} versions`);
  await goneFrom(
    [...objectsOf(scene), env.SPACE.getByName(other.id), agentStub(writer)],
    ["walled garden", "northern slope", "Quillfeather"],
  );
  expect(await owner.describe(workspaceId)).toMatchObject({ ok: false, problem: { code: "not_found" } });
  expect(unwrap(await agent.blocks(workspaceId)).map(({ label }) => label)).not.toContain("garden");
});

test("[L16] an erased agent gives nobody anything more once what it gave is taken back", async () => {
  const scene = await openScene();
  const { house } = scene;
  const writer = await house.agent({ name: "Quillfeather" });
  const { forgetSpace } = Agent.prototype;
  const gate = createGate();
  vi.spyOn(Agent.prototype, "forgetSpace").mockImplementation(async function (this: Agent, ...given) {
    gate.reach();
    await gate.opened;
    return forgetSpace.apply(this, given);
  });
  await erase(scene, "agent", writer.id);
  await gate.reached;
  expect(await agentAt(writer).describe(house.workspaceId)).toMatchObject({ problem: { code: "not_found" } });
  gate.open();
  await done(scene, writer.id);
});

test("[L16] an erased space is gone from its agents' compartments too, and says what it told", async () => {
  const scene = await openBoth({});
  const { house, analyst, space, secret } = scene;
  const model = scripted(answer(space.id, "Fine."));
  await scene.ask("I like the quinces of the old orchard");
  model.push(step(text("Well.")));
  await secret.ask("What do you know?", 1);
  expect(await rowsWith(agentStub(secret.mind), "quinces")).not.toEqual([]);
  await erase(scene, "space", space.id);
  const report = await done(scene, space.id);
  expect(report).toMatchObject({ kind: "space", objects: 3 });
  await goneFrom([...objectsOf(scene), agentStub(secret.mind)], ["quinces", "Alpha"]);
  expect(unwrap(await agentAt(analyst).describe(house.workspaceId)).id).toBe(analyst.id);
});

test("[L16] an erased person is gone from compartments, from what was fed and said there", async () => {
  const scene = await openBoth({});
  const { house, space, husam, secret } = scene;
  const model = scripted(answer(space.id, "Fine."));
  await scene.ask("I like the quinces of the old orchard");
  model.push(step(text("Well.")));
  await secret.ask("The medlars of the board are ripe", 1);
  await erase(scene, "person", husam.id);
  const report = await done(scene, husam.id);
  // Two spaces, two minds, and the workspace.
  expect(report.objects).toBe(5);
  const objects = [...objectsOf(scene), agentStub(secret.mind), env.SPACE.getByName(secret.space.id)];
  await goneFrom(objects, ["quinces", "medlars", "Husam"]);
  expect(unwrap(await workspaceAt(house.workspaceId).erasures({ limit: 10 })).items).toEqual([report]);
});

test("[C19] [L16] the report of an erasure proves no guess of a confidential space's words", async () => {
  const rowsWhere = async (...said: [string, ...string[]]): Promise<number> => {
    const scene = await openBoth({ continuity: "timeline" });
    const { house, analyst, secret, husam } = scene;
    const mona = await house.person("Mona");
    const [other, board] = [await house.space("Beta", [mona, analyst]), await house.space("C", [mona, husam], true)];
    scripted([step(text("Well.")), step(text("Well."))]);
    await other.post(mona, "we sell the northern orchard");
    await ended(house.workspaceId, analyst, 1);
    await secret.ask(said[0], 1);
    for (const each of said) await board.post(mona, each);
    await erase(scene, "person", mona.id);
    return (await done(scene, mona.id)).rows;
  };
  expect(await rowsWhere("we sell the northern orchard", "yes")).toBe(await rowsWhere("we keep the meadow"));
});

test("[L16] an erased workspace keeps ids and numbers, which its operator reads", async () => {
  const scene = await openBoth({});
  const { house, space, secret, analyst } = scene;
  const model = scripted(answer(space.id, "Fine."));
  await scene.ask("I like the quinces of the old orchard");
  model.push(step(text("Well.")));
  await secret.ask("The medlars of the board are ripe", 1);
  await erase(scene, "workspace", house.workspaceId);
  const report = await done(scene, house.workspaceId);
  expect(report).toMatchObject({ kind: "workspace", unknown: [expect.stringContaining("models")] });
  const objects = [...objectsOf(scene), agentStub(secret.mind), env.SPACE.getByName(secret.space.id)];
  await goneFrom(objects, ["quinces", "medlars", "Husam", "Alpha", "Board", "Test"]);
  const late = { action: "secret.used", actor: { id: secret.space.id }, target: "MEDLAR_KEY" } as const;
  await workspaceAt(house.workspaceId).noteAudit(late);
  await goneFrom([workspaceAt(house.workspaceId)], ["MEDLAR_KEY"]);
  const overview = unwrap(await workspaceAt(house.workspaceId).overview());
  expect(overview).toMatchObject({ erasure: report, waiting: 0, name: "[erased]", deletedAt: expect.any(String) });
  expect(await agentAt(analyst).describe(house.workspaceId)).toMatchObject({ ok: false });
});

test("[L16] who was removed before is erased too, and so is an agent that was deleted", async () => {
  const scene = await openScene();
  const { house, husam, analyst } = scene;
  const mona = await house.person("Mona");
  const reader = await house.agent({ name: "Reader" });
  const [other, third] = [await house.space("Beta", [mona, analyst]), await house.space("Gamma", [husam, reader])];
  const model = scripted([step(text("Well."))]);
  await other.post(mona, "I like the quinces of the old orchard");
  await ended(house.workspaceId, analyst, 1);
  model.push(...answer(third.id, "The medlars are ripe."));
  await third.post(husam, "What is ripe?");
  await ended(house.workspaceId, reader, 1);
  const workspace = workspaceAt(house.workspaceId);
  for (const { id } of [mona, reader]) unwrap(await workspace.removeEntity(id));
  await vi.waitFor(async () => expect((await agentAt(reader).describe(house.workspaceId)).ok).toBe(false));
  await erase(scene, "person", mona.id);
  await erase(scene, "agent", reader.id);
  for (const { id } of [mona, reader]) await done(scene, id);
  const objects = [agentStub(analyst), workspace, ...[other, third].map(({ id }) => env.SPACE.getByName(id))];
  await goneFrom(objects, ["quinces", "medlars", "Mona", "Reader"]);
});

test("[L16] each name that an erased person ever had goes from agents, however many there were", async () => {
  const scene = await openScene();
  const { space } = scene;
  const mona = await scene.house.person("Mona");
  unwrap(await space.stub().addMember(scene.house.key, mona));
  const names = Array.from({ length: 24 }, (_, index) => `Mona ${index}`);
  for (const name of names) unwrap(await space.stub().renameMember(scene.house.workspaceId, mona.id, name));
  const forgets = vi.spyOn(Agent.prototype, "forgetSpace");
  await erase(scene, "person", mona.id);
  await done(scene, mona.id);
  const words = forgets.mock.calls.flatMap(([, , redaction]) => redaction?.words ?? []);
  for (const name of ["Mona", ...names]) expect(words).toContain(name);
});

test("[L16] an erased workspace keeps nobody's name, though somebody's erasure was under way", async () => {
  const scene = await openScene();
  const { house, husam } = scene;
  const { erase: go } = Space.prototype;
  const gate = createGate();
  vi.spyOn(Space.prototype, "erase").mockImplementation(async function (this: Space, ...asked) {
    if (asked[1] !== null) gate.reach();
    if (asked[1] !== null) await gate.opened;
    return go.apply(this, asked);
  });
  await erase(scene, "person", husam.id);
  await gate.reached;
  await erase(scene, "workspace", house.workspaceId);
  await done(scene, house.workspaceId);
  await goneFrom([workspaceAt(house.workspaceId)], ["Husam"]);
  gate.open();
});

test("[L6] [L16] the operator ends a workspace, however much is being erased there", async () => {
  const scene = await openScene();
  const { house, husam } = scene;
  const workspace = workspaceAt(house.workspaceId);
  vi.spyOn(Space.prototype, "erase").mockResolvedValue(refuse("unavailable", "out of reach"));
  const people = await Promise.all(Array.from({ length: maxErasuresAtOnce }, () => house.person("Mona")));
  for (const { id } of people) await erase(scene, "person", id);
  const another = await workspace.beginErasure({ kind: "person", id: husam.id }, key);
  expect(another).toMatchObject({ problem: { code: "limit_reached" } });
  unwrap(await workspace.suspend("Unpaid"));
  expect(unwrap(await workspace.end())).toMatchObject({ erasure: { kind: "workspace", state: "running" } });
});

test("[L16] what cannot be erased is refused by name, and the same erasure again is the same", async () => {
  const scene = await openScene();
  const { house, husam, analyst, space } = scene;
  const mona = await house.person("Mona");
  const workspace = workspaceAt(house.workspaceId);
  const refused = async (kind: ErasureKind, id: string) => {
    const answered = await workspace.beginErasure({ kind, id }, key);
    return answered.ok ? "begun" : answered.problem.code;
  };
  expect(await refused("person", ids.mint("ent"))).toBe("not_found");
  expect(await refused("space", ids.mint("spc"))).toBe("not_found");
  expect(await refused("workspace", ids.mint("wsp"))).toBe("not_found");
  expect(await refused("person", analyst.id)).toBe("conflict");
  expect(await refused("agent", husam.id)).toBe("conflict");
  expect(await refused("space", husam.id)).toBe("not_found");
  expect(await workspace.erasure(mona.id)).toMatchObject({ ok: false, problem: { code: "not_found" } });
  const first = await erase(scene, "person", mona.id);
  expect(first).toMatchObject({ state: "running", left: 1, waiting: [space.id] });
  expect(await erase(scene, "person", mona.id)).toMatchObject({ createdAt: first.createdAt });
  const report = await done(scene, mona.id);
  expect(await erase(scene, "person", mona.id)).toEqual(report);
  expect(await workspace.createEntity(mona.id, { type: "human", name: "Mona", role: "member" })).toMatchObject({
    problem: { code: "gone" },
  });
});
