import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { places } from "../../../src/agent/redaction/places.ts";
import { CreateBlock } from "../../../src/protocol/block.ts";
import { erasedName } from "../../../src/protocol/entity.ts";
import type { Redaction } from "../../../src/protocol/message-change.ts";
import { SearchQuery } from "../../../src/protocol/search.ts";
import { unwrap } from "../../../src/shared/errors.ts";
import { Space } from "../../../src/space/space.ts";
import { createGate } from "../../support/gate.ts";
import { rowsWith } from "../../support/rows.ts";
import { answer, call, step, text, waitAt } from "../../support/scripted-model.ts";
import { openBoth } from "../compartment.ts";
import { agentStub, ended, exported, openScene, rowsIn, scripted, told, userTexts, waits } from "../fixture.ts";

/** What an agent keeps of messages that were edited or deleted. */
const words = "the quinces of the old orchard";

const spaceStub = (id: string): DurableObjectStub => env.SPACE.getByName(id) as unknown as DurableObjectStub;

type Scene = Awaited<ReturnType<typeof openScene>>;

const remove = async ({ space, house }: Scene, messageId: string) => {
  return unwrap(await space.stub().deleteMessage(house.key, messageId));
};
/** Neither the agent nor the space holds these words. */
const gone = ({ analyst, space }: Scene, text: string): Promise<void> =>
  vi.waitFor(async () => {
    expect(await rowsWith(agentStub(analyst), text)).toEqual([]);
    expect(await rowsWith(spaceStub(space.id), text)).toEqual([]);
  });

test("[L4] [L16] words that an agent made the keys of what it keeps are gone with their message", async () => {
  const scene = await openScene();
  const { space, husam, agent, house } = scene;
  const { workspaceId } = house;
  const [one, other] = ["GB29NWBK60161331926819", "DE89370400440532013000"];
  const soon = { name: "Pay", instruction: "Pay it.", runAfter: "3 days" };
  scripted([
    step(
      call("set_memories", { memories: [one, other].map((key) => ({ key, value: key === one ? "first" : "second" })) }),
      call("set_goals", { goals: [{ id: `pay-${one}`, description: "Pay" }] }),
      call("set_plans", { plans: [{ id: one, ...soon }] }),
    ),
    step(text("Noted.")),
  ]);
  const message = await space.post(husam, `Pay ${one} and ${other}`);
  await ended(workspaceId, scene.analyst, 1);
  expect(unwrap(await agent.plans(workspaceId))).toMatchObject([{ id: one }]);
  await remove(scene, message.id);
  for (const each of [one, other]) await gone(scene, each);
  expect(
    unwrap(await agent.memories(workspaceId))
      .map(({ value }) => value)
      .sort(),
  ).toEqual(["first", "second"]);
  expect(unwrap(await agent.goals(workspaceId))).toMatchObject([{ description: "Pay" }]);
  expect(unwrap(await agent.plans(workspaceId))).toMatchObject([{ instruction: "Pay it.", status: "active" }]);
  expect(await exported(workspaceId, scene.analyst)).toBeDefined();
});

test("[L4] words that label a core block go from a window's instructions too", async () => {
  const { ask, agent, analyst, house } = await openScene();
  scripted([step(text("Well."))]);
  await ask("Hello");
  const [one, other] = ["GB29NWBK60161331926819", "DE89370400440532013000"];
  const blocks = Object.fromEntries([one, other].map((each) => [each, `[${each}] pay ${each}`]));
  const instructions = `Before\n${Object.values(blocks).join("\n")}\nafter`;
  await rowsIn(analyst, "UPDATE windows SET blocks = ?, instructions = ?", JSON.stringify(blocks), instructions);
  unwrap(await agent.redact(house.workspaceId, [{ id: "erasure:1", words: [one, other], since: 0 }]));
  for (const each of [one, other]) {
    await vi.waitFor(async () => expect(await rowsWith(agentStub(analyst), each)).toEqual([]));
  }
  const lines = "[[deleted]] pay [deleted]\n[[deleted]] pay [deleted]";
  expect(await rowsIn(analyst, "SELECT instructions FROM windows")).toEqual([
    { instructions: `Before\n${lines}\nafter` },
  ]);
});

test("[L4] words go with their message from ids and codes that an agent made of them", async () => {
  const scene = await openScene();
  const { space, husam, house } = scene;
  const said = "correct-horse-battery-staple";
  scripted([
    step(
      call("set_goals", { goals: [{ id: said, description: "Open it" }] }),
      call("recall", { op: "insert", content: "It opens.", metadata: { code: said } }),
      call("set_plans", { plans: [{ id: said, name: "Open", instruction: "Open it.", runAfter: "3 days" }] }),
    ),
    step(text("Noted.")),
  ]);
  const message = await space.post(husam, `The safe opens by ${said}`);
  await ended(house.workspaceId, scene.analyst, 1);
  expect(await rowsWith(agentStub(scene.analyst), said)).not.toEqual([]);
  await remove(scene, message.id);
  const left = async () =>
    (await rowsWith(agentStub(scene.analyst), said)).filter((row) => !/^(?:archival|search_entries) /.test(row));
  await vi.waitFor(async () => expect(await left()).toEqual([]));
});

test("[L4] deleted words that are a memory's key are in no later input", async () => {
  const scene = await openScene();
  const { space, husam, agent, house, analyst, ask } = scene;
  const said = "correct-horse-battery-staple";
  const model = scripted(() => step(text("Well.")));
  const message = await space.post(husam, `The safe opens by ${said}`);
  await ended(house.workspaceId, analyst, 1);
  unwrap(await agent.putMemory(house.workspaceId, said, "the safe"));
  await ask("Hello", 2);
  await remove(scene, message.id);
  await vi.waitFor(async () =>
    expect(await rowsIn(analyst, "SELECT words FROM redactions")).toEqual([{ words: null }]),
  );
  await ask("And now?", 3);
  expect(userTexts(model.calls.at(-1)).join("\n")).not.toContain(said);
  await gone(scene, said);
});

test("[L4] a run under way keeps no key of deleted words for the next input", async () => {
  const scene = await openScene({ context: { activity: true } });
  const { space, husam, agent, house, analyst, ask } = scene;
  const said = "correct-horse-battery-staple";
  const model = scripted(() => step(text("Well.")));
  const message = await space.post(husam, `The safe opens by ${said}`);
  await ended(house.workspaceId, analyst, 1);
  unwrap(await agent.putMemory(house.workspaceId, said, "the safe"));
  const gate = createGate();
  onTestFinished(gate.open);
  const { window } = Space.prototype;
  vi.spyOn(Space.prototype, "window").mockImplementation(async function (this: Space, ...asked) {
    gate.reach();
    await gate.opened;
    return window.apply(this, asked);
  });
  await space.post(husam, "Hello");
  await gate.reached;
  await remove(scene, message.id);
  await vi.waitFor(async () =>
    expect(await rowsIn(analyst, "SELECT place FROM redactions")).toEqual([{ place: places.length + 1 }]),
  );
  gate.open();
  await ended(house.workspaceId, analyst, 2);
  await gone(scene, said);
  await ask("And now?", 3);
  expect(userTexts(model.calls.at(-1)).join("\n")).not.toContain(said);
});

describe.each(["consciousness", "timeline"] as const)("%s", (continuity) => {
  test("[L4] a deleted message that a run handled is gone from every row, index and answer", async () => {
    const scene = await openScene({ continuity });
    const { space, husam, house, analyst, agent } = scene;
    const model = scripted(answer(space.id, "A fine orchard."));
    const message = await space.post(husam, `I like ${words}`);
    const [run] = await ended(house.workspaceId, analyst, 1);
    const find = () => agent.search(house.workspaceId, SearchQuery.parse({ query: "quinces", mode: "fts" }));
    expect(unwrap(await find()).items.length).toBeGreaterThan(0);
    await remove(scene, message.id);
    await gone(scene, "quinces");
    expect(unwrap(await find()).items).toEqual([]);
    const kept = [await agent.run(house.workspaceId, run?.id ?? ""), await agent.context(house.workspaceId)];
    expect(JSON.stringify(kept)).not.toContain("quinces");
    model.push(step(text("Well.")));
    await scene.ask("And now?", 2);
    const input = userTexts(model.calls.at(-1)).join("\n");
    expect(input).not.toContain("quinces");
    const line = `STATE CHANGES:\n  MESSAGES:\n    - message ${message.id} was deleted`;
    expect(input).toContain(line);
    model.push(step(text("Well.")));
    await scene.ask("And now?", 3);
    expect(userTexts(model.calls.at(-1)).at(-1)).not.toContain("was deleted");
  });

  test("[L4] what waits for a run goes with its deletion, and changes with its edit", async () => {
    const scene = await openScene({ continuity, limits: { maxConcurrentRuns: 1 } });
    const { space, husam, house, analyst } = scene;
    const gate = createGate();
    const model = scripted([step(waitAt(gate), text("One.")), step(text("Two."))]);
    await space.post(husam, "First");
    await gate.reached;
    const [second, third] = [await space.post(husam, `Second: ${words}`), await space.post(husam, "Third: medlars")];
    await remove(scene, second.id);
    unwrap(await space.stub().editMessage(space.as(husam), third.id, "Third: the pears"));
    await told(space.id);
    gate.open();
    const runs = await ended(house.workspaceId, analyst, 2);
    expect(runs).toHaveLength(2);
    const input = JSON.stringify(model.calls.at(-1)?.prompt);
    expect(input).toContain("the pears");
    for (const old of ["quinces", "medlars"]) {
      expect(input).not.toContain(old);
      await gone(scene, old);
    }
  });

  test("[L4] what is deleted while a run reads it is in none of its rows when it has ended", async () => {
    const scene = await openScene({ continuity });
    const { space, husam, house, analyst } = scene;
    const gate = createGate();
    scripted([
      step(call("enter_space", { spaceId: space.id })),
      step(waitAt(gate), call("read_messages", { limit: 5 })),
      step(text(`I thought of ${words}.`)),
    ]);
    const message = await space.post(husam, `I like ${words}`);
    await gate.reached;
    await remove(scene, message.id);
    await told(space.id);
    gate.open();
    await ended(house.workspaceId, analyst, 1);
    await gone(scene, "quinces");
  });

  test("[L4] an agent that has left forgets what is deleted there, and its own words go too", async () => {
    const scene = await openScene({ continuity });
    const { space, husam, house, analyst } = scene;
    scripted(answer(space.id, "The medlars of the new orchard."));
    const message = await space.post(husam, `I like ${words}`);
    await ended(house.workspaceId, analyst, 1);
    const own = (await space.messages()).at(-1);
    await remove(scene, own?.id ?? "");
    await gone(scene, "medlars");
    unwrap(await space.stub().removeMember(house.key, analyst.id));
    await told(space.id);
    await remove(scene, message.id);
    await gone(scene, "quinces");
  });
});

test("[L4] a run that waits goes on where its own message was deleted, and is told of it", async () => {
  const scene = await openScene({ continuity: "timeline", messaging: "threaded" });
  const { space, husam, house, analyst } = scene;
  const model = scripted([
    step(call("enter_space", { spaceId: space.id })),
    step(call("send_message", { text: "Which of them?", wait: true })),
    step(text("Thanks.")),
  ]);
  const message = await space.post(husam, `I like ${words}`);
  await waits(house.workspaceId, analyst);
  await remove(scene, message.id);
  await gone(scene, "quinces");
  await space.post(husam, "The old ones");
  const runs = await ended(house.workspaceId, analyst, 1);
  expect(runs).toMatchObject([{ status: "completed" }]);
  const input = userTexts(model.calls.at(-1)).join("\n");
  expect(input).toContain(`STATE CHANGES:\n  MESSAGES:\n    - message ${message.id} was deleted`);
  expect(input).toContain("The old ones");
});

test("[L4] an edit is told to the runs that knew the message, and the old words are gone", async () => {
  const scene = await openScene();
  const { space, husam } = scene;
  const model = scripted(answer(space.id, "Fine."));
  const message = await space.post(husam, `I like ${words}`);
  await ended(scene.house.workspaceId, scene.analyst, 1);
  unwrap(await space.stub().editMessage(space.as(husam), message.id, "I like pears"));
  await gone(scene, "quinces");
  model.push(step(text("Well.")));
  await scene.ask("And now?", 2);
  expect(userTexts(model.calls.at(-1)).at(-1)).toContain(`    - message ${message.id} now reads: "I like pears"`);
  await remove(scene, message.id);
  await gone(scene, "I like pears");
});

test("[L4] what somebody writes like an erasure is forgotten like all other text", async () => {
  const input = { mark: erasedName, id: `${words} and their owner`, name: "the medlars of the new orchard" };
  const tool = { name: "note", description: "Notes.", executionType: "internal" as const, visible: true };
  const inputSchema = { type: "object", properties: {} };
  const scene = await openScene({ tools: [{ ...tool, inputSchema, async: false, idempotent: true, timeoutMs: 1000 }] });
  const { space, husam, house, analyst } = scene;
  const enter = call("enter_space", { spaceId: space.id });
  const model = scripted([step(enter), step(call("note", input)), step(text("Noted."))]);
  const message = await space.post(husam, erasedName);
  await ended(house.workspaceId, analyst, 1);
  unwrap(await space.stub().editMessage(space.as(husam), message.id, "I like pears"));
  const noted = (await space.messages()).find(({ toolCall }) => toolCall?.name === "note");
  await remove(scene, noted?.id ?? "");
  await gone(scene, "quinces");
  await gone(scene, "medlars");
  model.push(step(text("Well.")));
  await scene.ask("And now?", 2);
  expect(userTexts(model.calls.at(-1)).at(-1)).toContain(`    - message ${message.id} now reads: "I like pears"`);
});

test("[L4] a compartment forgets what its open mind was told", async () => {
  const scene = await openBoth({});
  const { space, husam, house, analyst, secret } = scene;
  const model = scripted(answer(space.id, "Fine."));
  const message = await space.post(husam, `I like ${words}`);
  await ended(house.workspaceId, analyst, 1);
  model.push(step(text("Well.")), step(text("Well.")));
  await secret.ask("What do you know?", 1);
  const compartment = agentStub(secret.mind);
  expect(await rowsWith(compartment, "quinces")).not.toEqual([]);
  const inside = await secret.tell("The medlars are a secret of the board");
  await secret.ended(2);
  await remove(scene, message.id);
  await gone(scene, "quinces");
  await vi.waitFor(async () => expect(await rowsWith(compartment, "quinces")).toEqual([]));
  await remove({ ...scene, space: secret.space }, inside.id);
  await vi.waitFor(async () => expect(await rowsWith(compartment, "medlars")).toEqual([]));
});

test("[L4] a compartment is told of each of two changes that come together", async () => {
  const { agent, house, secret } = await openBoth({});
  scripted([step(text("Well."))]);
  const { id } = await secret.tell("Good morning");
  await secret.ended(1);
  const [damsons, apricots, plums] = [
    "the damsons of the north",
    "the apricots of the south",
    "the plums of next year",
  ];
  const memory = [[damsons, apricots, plums].join("; "), Date.now()];
  await rowsIn(secret.mind, "INSERT INTO memories (key, value, updated_at) VALUES ('m', ?, ?)", ...memory);
  const changes: Redaction[] = [
    { id, words: [damsons], since: 0, text: apricots },
    { id, words: [apricots, plums], since: 0, saidAt: [0, Date.now() + 1000] },
  ];
  unwrap(await agent.redact(house.workspaceId, changes));
  await vi.waitFor(async () => {
    const [row] = await rowsIn(secret.mind, "SELECT value FROM memories");
    expect(String(row?.value).replaceAll("[edited]", "[deleted]")).toBe(`[deleted]; [deleted]; ${plums}`);
  });
});

test("[L4] what runs that knew a message wrote down is named, as long as it is there", async () => {
  const scene = await openScene();
  const { space, husam, house, analyst, agent } = scene;
  scripted([
    step(call("block_create", { label: "fruit", content: "about the orchard" })),
    step(call("recall", { op: "insert", content: "Husam knows an orchard" })),
    step(text("Kept.")),
    step(call("block_create", { label: "weather", content: "rain" })),
    step(text("Kept.")),
  ]);
  const message = await space.post(husam, `I like ${words}`);
  await ended(house.workspaceId, analyst, 1);
  await scene.ask("It rains", 2);
  await remove(scene, message.id);
  await gone(scene, "quinces");
  const related = async () => unwrap(await agent.related(house.workspaceId, message.id));
  const [block, entry, ...others] = await related();
  expect([block, entry?.kind, others]).toEqual([{ kind: "block", label: "fruit" }, "archival", []]);
  unwrap(await agent.deleteArchival(house.workspaceId, entry?.id ?? ""));
  expect(await related()).toEqual([block]);
});

test("[L4] a block names its messages as an archival entry does, deleted ones too", async () => {
  const scene = await openScene();
  const { space, husam, house, analyst, agent } = scene;
  const operations = [{ op: "append_text", text: " and rain" }];
  scripted([
    step(call("block_create", { label: "fruit", content: "an orchard" })),
    step(call("recall", { op: "insert", content: "Husam knows an orchard" })),
    step(text("Kept.")),
    step(call("block_edit", { label: "fruit", operations }), call("block_history", { label: "fruit" })),
    step(text("Kept.")),
  ]);
  const first = await space.post(husam, `I like ${words}`);
  await ended(house.workspaceId, analyst, 1);
  const second = await space.post(husam, "It rains");
  const runs = await ended(house.workspaceId, analyst, 2);
  expect(JSON.stringify(runs.at(-1)?.steps)).not.toContain("sources");
  unwrap(await agent.editBlock(house.workspaceId, "fruit", { operations: [{ op: "undo" }], as: "agent" }, "system"));
  await remove(scene, first.id);
  await gone(scene, "quinces");
  const { items } = unwrap(await agent.blockHistory(house.workspaceId, "fruit", { limit: 9 }));
  expect(items.map(({ sources }) => sources)).toEqual([undefined, [second.id], [first.id]]);
  const kept = unwrap(await agent.archival(house.workspaceId, { limit: 9 }));
  expect(kept.items.map(({ source }) => source.messageId)).toEqual([first.id]);
  const grantee = await house.agent({ name: "Reader" });
  const grant = { granteeId: grantee.id, permission: "ReadWrite" } as const;
  unwrap(await agent.shareBlock(house.workspaceId, "fruit", grant));
  const shown = unwrap(await agent.blockHistory(house.workspaceId, "fruit", { limit: 9 }, grantee.id));
  expect(JSON.stringify(shown)).not.toContain("sources");
});

test("[L4] words that no message is named for go by one call, again as once", async () => {
  const scene = await openScene();
  const { space, husam, house, analyst, agent } = scene;
  scripted(answer(space.id, "Fine."));
  await space.post(husam, `I like ${words}`);
  await ended(house.workspaceId, analyst, 1);
  const redaction = { id: "erasure:1", words: [`I like ${words}`], since: 0 };
  for (let time = 0; time < 2; time += 1) unwrap(await agent.redact(house.workspaceId, [redaction]));
  await vi.waitFor(async () => expect(await rowsWith(agentStub(analyst), "quinces")).toEqual([]));
});

test("[L4] what another space was told of a message as an origin goes there too", async () => {
  const scene = await openScene({ continuity: "timeline" });
  const { space, husam, house, analyst } = scene;
  unwrap(await space.stub().update(house.key, { shareOrigin: "text" }));
  const carol = await house.person("Carol");
  const other = await house.space("Beta", [carol, analyst]);
  await told(space.id);
  scripted(answer(other.id, "Husam has news."));
  const message = await space.post(husam, `Tell them of ${words}`);
  await ended(house.workspaceId, analyst, 1);
  const there = async () => JSON.stringify(await other.messages());
  expect(await there()).toContain("quinces");
  await remove(scene, message.id);
  await gone(scene, "quinces");
  await vi.waitFor(async () => expect(await rowsWith(spaceStub(other.id), "quinces")).toEqual([]));
  expect(await there()).toContain(message.id);
});

test.each(["consciousness", "timeline"] as const)(
  "[L4] who repeats a message and deletes that takes nothing from the other's: %s",
  async (continuity) => {
    const scene = await openScene({ continuity, limits: { maxConcurrentRuns: 1 } });
    const { space, husam, house, analyst, agent } = scene;
    const mallory = await house.person("Mallory");
    unwrap(await space.stub().addMember(house.key, { id: mallory.id, name: "Mallory", type: "human" }));
    const gate = createGate();
    const model = scripted([step(waitAt(gate), text("One.")), step(text("Two.")), step(text("Three."))]);
    const said = [await space.post(husam, `I approve ${words}`)];
    await gate.reached;
    said.push(await space.post(husam, "no"));
    const copies = [await space.post(mallory, "no"), await space.post(mallory, `I approve ${words}`)];
    for (const { id } of copies) unwrap(await space.stub().deleteMessage(space.as(mallory), id));
    await told(space.id);
    gate.open();
    await ended(house.workspaceId, analyst, 2);
    await vi.waitFor(async () =>
      expect(await rowsIn(analyst, "SELECT id FROM redactions WHERE words IS NOT NULL")).toEqual([]),
    );
    model.push(step(text("Well.")));
    await scene.ask("And now?", 3);
    const lines = userTexts(model.calls.at(-1)).join("\n").split("\n");
    expect(lines.some((line) => line.includes(said[0]?.id ?? "") && line.includes(`"I approve ${words}"`))).toBe(true);
    expect(lines.some((line) => line.includes(said[1]?.id ?? "") && line.includes('"no"'))).toBe(true);
    const found = await agent.search(house.workspaceId, SearchQuery.parse({ query: "quinces", mode: "fts" }));
    expect(unwrap(found).items.map(({ id }) => id)).toContain(said[0]?.id);
  },
);

test("[L4] [L14] a compartment is told what the last release was about to tell it", async () => {
  const { analyst, agent, house, secret } = await openBoth({});
  scripted([step(text("Well."))]);
  const { id } = await secret.tell("Good morning");
  await secret.ended(1);
  unwrap(await agent.redact(house.workspaceId, [{ id, words: ["the damsons of the north"], since: 0 }]));
  const waiting = () => rowsIn(analyst, "SELECT key FROM jobs WHERE kind = 'redact'");
  await vi.waitFor(async () => expect(await waiting()).toEqual([]));
  const words = "the plums of next year";
  await rowsIn(secret.mind, "INSERT INTO memories (key, value, updated_at) VALUES ('m', ?, ?)", words, Date.now());
  const payload = JSON.stringify({ mindId: secret.mind.id, redaction: { id, words: [words], since: 0 } });
  const key = `${secret.mind.id} ${id}`;
  await rowsIn(analyst, "INSERT INTO jobs (kind, key, due_at, payload) VALUES ('redact', ?, 0, ?)", key, payload);
  await rowsIn(analyst, "INSERT OR REPLACE INTO timers (name, due_at) VALUES ('jobs', 0)");
  await evictDurableObject(agentStub(analyst));
  await runInDurableObject(agentStub(analyst), (_, { storage }) => storage.setAlarm(Date.now() + 60_000));
  await runDurableObjectAlarm(agentStub(analyst));
  await vi.waitFor(async () =>
    expect(await rowsIn(secret.mind, "SELECT value FROM memories")).toEqual([{ value: "[deleted]" }]),
  );
});

/** The passages that have a vector: of a packed row the ids follow the times. */
const passagesWithVectors = async ({ analyst }: Scene): Promise<number[]> => {
  const rows = await rowsIn(analyst, "SELECT passages, packed FROM search_vectors");
  return rows.flatMap(({ passages, packed }) => {
    const count = Number(passages);
    return [...new Uint32Array((packed as ArrayBuffer).slice(8 * count, 12 * count))];
  });
};

test("[L4] the vector of a deleted message goes with it, and that of an edited one is made anew", async () => {
  const scene = await openScene();
  const { space, husam, house, analyst, agent } = scene;
  scripted(() => step(text("Read.")));
  const likest = async (query: string): Promise<string[]> => {
    const found = await agent.search(house.workspaceId, SearchQuery.parse({ query, mode: "vector" }));
    return unwrap(found).items.map(({ id }) => id);
  };
  const deleted = await space.post(husam, `I like ${words}`);
  const edited = await space.post(husam, "The medlars are ripe in November");
  await vi.waitFor(async () => expect(await likest("quinces and medlars")).toContain(edited.id));
  expect(await likest("the old orchard's quinces")).toContain(deleted.id);
  const before = await passagesWithVectors(scene);
  await remove(scene, deleted.id);
  unwrap(await space.stub().editMessage(space.as(husam), edited.id, "Zebras sleep on their feet"));
  await gone(scene, "quinces");
  await gone(scene, "medlars");
  const passages = (await rowsIn(analyst, "SELECT id FROM search_entries")).map(({ id }) => Number(id));
  expect(before.filter((id) => !passages.includes(id)).length).toBeGreaterThanOrEqual(1);
  expect((await passagesWithVectors(scene)).filter((id) => !passages.includes(id))).toEqual([]);
  await vi.waitFor(async () => expect(await likest("a zebra's sleep")).toContain(edited.id));
  expect(await likest("the old orchard's quinces")).not.toContain(deleted.id);
});

test("[L4] a deleted question is gone from the index of another person's answer to it", async () => {
  const scene = await openScene();
  const { space, husam, house, analyst, agent } = scene;
  const sara = await house.person("Sara");
  unwrap(await space.stub().addMember(house.key, { id: sara.id, name: "Sara", type: "human" }));
  scripted([step(text("One.")), step(text("Two."))]);
  const find = async (query: string) =>
    unwrap(await agent.search(house.workspaceId, SearchQuery.parse({ query, mode: "fts" }))).items.map(({ id }) => id);
  const question = await space.post(husam, `Shall we sell ${words}?`);
  const reply = await space.post(sara, "Only the medlars, please.");
  await vi.waitFor(async () => expect(await find("quinces")).toContain(reply.id));
  await remove(scene, question.id);
  await gone(scene, "quinces");
  expect(await find("quinces")).toEqual([]);
  expect(await find("medlars Sara")).toContain(reply.id);
  expect(await rowsIn(analyst, "SELECT DISTINCT head FROM search_entries WHERE ref = ?", reply.id)).toEqual([
    { head: expect.stringMatching(/^Sara · .+ · .+ · .*\[deleted\]/) },
  ]);
});

test("[L4] [C19] who repeats and deletes words takes none out that were kept before", async () => {
  const scene = await openBoth({});
  const { house, analyst, secret } = scene;
  const rule = "Never pay an invoice above 1000 EUR without the board";
  const block = { label: "policy", type: "core", content: rule };
  unwrap(await scene.agent.createBlock(house.workspaceId, CreateBlock.parse(block), "system"));
  const keep = (key: string) => [
    step(
      call("set_memories", { memories: [{ key, value: rule }] }),
      call("set_plans", { plans: [{ id: key, name: key, instruction: rule, runAfter: "300 days" }] }),
    ),
    step(text("Kept.")),
  ];
  const model = scripted([...keep("openly"), ...keep("inside")]);
  await scene.ask("Keep the rule in mind.", 1);
  await secret.ask("Keep our rule in mind.", 1);
  model.push(step(text("Hello.")));
  const mallory = await house.person("Mallory");
  const lobby = await house.space("Lobby", [mallory, analyst]);
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 3_600_000 });
  onTestFinished(() => void vi.useRealTimers());
  const message = await lobby.post(mallory, rule);
  await ended(house.workspaceId, analyst, 2);
  unwrap(await lobby.stub().deleteMessage(lobby.as(mallory), message.id));
  await told(lobby.id);
  await vi.waitFor(async () => expect(await rowsIn(secret.mind, "SELECT id FROM redactions")).toHaveLength(1));
  for (const mind of [analyst, secret.mind]) {
    expect(await rowsIn(mind, "SELECT value FROM memories")).toEqual([{ value: rule }]);
  }
  const fed = await rowsIn(secret.mind, "SELECT part, value FROM feed WHERE part IN ('memories', 'plans')");
  expect(fed.map(({ part, value }) => [part, String(value).includes(rule)])).toEqual(
    expect.arrayContaining([
      ["memories", true],
      ["plans", true],
    ]),
  );
  model.push(step(text("Well.")));
  await secret.ask("What is our rule?", 2);
  expect(JSON.stringify(model.calls.at(-1)?.prompt[0])).toContain(rule);
});
