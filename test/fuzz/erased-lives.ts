import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import fc from "fast-check";
import { expect, vi } from "vitest";
import type { CallOptions } from "../../src/models/language-model.ts";
import { AgentConfig } from "../../src/protocol/agent.ts";
import { CreateArchival } from "../../src/protocol/archival.ts";
import { CreateBlock } from "../../src/protocol/block.ts";
import type { Message } from "../../src/protocol/message.ts";
import type { EntityRef } from "../../src/protocol/rpc.ts";
import { dayMs } from "../../src/shared/clock.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { compartmentId } from "../../src/shared/ids.ts";
import { agentStub, ids, inboxOf, openHouse, runsOf, told } from "../agent/fixture.ts";
import { call, installModel, type ScriptedStep, scriptedModel, step, text } from "../support/scripted-model.ts";
import { objectsOf, rowWith, type Tellers, type Tellings, tellings } from "./tellings.ts";

/**
 * Random lives of two people and two agents in two open spaces and a confidential one. All that is said holds a marked word of
 * its own, and so do names, calls that show, a shared block and an archival entry. In the end one thing is taken out, or the
 * first half of a life grows too old. Then no row of any object holds its marked words, no index, no export, no answer and no
 * prompt. What others said is told wherever it was told before.
 */
const erased = ["person", "space", "agent", "workspace"] as const;
const deleted = ["messages", "deleted space", "deleted agent", "deleted documents"] as const;
const aged = ["retention of a space", "retention of a workspace"] as const;
const isAged = (kind: Kind): kind is (typeof aged)[number] => aged.some((one) => one === kind);
export const kinds = [...erased, ...deleted, ...aged] as const;
export type Kind = (typeof kinds)[number];

const turn = fc.record({
  words: fc.constantFrom("", 'a "quoted" line\nand one more', "naïve 😀 words\\ with all sorts of signs", "tea"),
  /** Who says it, and where. */
  by: fc.nat(1),
  place: fc.nat(2),
  /** Said alone, a short word stands in other forms than within a sentence. */
  isAlone: fc.boolean(),
  isEdited: fc.boolean(),
  /** Whether the agents are waited for. */
  rests: fc.boolean(),
  /** What happens beside it. */
  beside: fc.constantFrom("nothing", "nothing", "nothing", "rename", "leave", "come", "share", "crash"),
});
type Turn = typeof turn extends fc.Arbitrary<infer Value> ? Value : never;
export type Life = { kind: Kind; seed: number; turns: Turn[] };

export const life: fc.Arbitrary<Life> = fc.record({
  kind: fc.constantFrom(...kinds),
  seed: fc.nat(1000),
  turns: fc.array(turn, { minLength: 3, maxLength: 7 }),
});

const toolsSince = ({ prompt }: CallOptions): number =>
  prompt.slice(prompt.findLastIndex(({ role }) => role === "user")).filter(({ role }) => role === "tool").length;

/** What is only asked to see what an agent is given. It does nothing then. */
const question = "And you, after";
const asksOnly = ({ prompt }: CallOptions): boolean =>
  JSON.stringify(prompt.findLast(({ role }) => role === "user")).search(beginsFor(question)) !== -1;
/** Where a prompt tells the event that its run is for. */
const beginsFor = (words: string): RegExp => new RegExp(`${words}[^"]*\\W+(?:NEW\\] ← TRIGGER|triggerSource: every)`);

/** Looks around by the tools that tell what was said, and says marked words of its own. */
const looking =
  (spaceIds: string[], seed: number) =>
  (options: CallOptions, index: number): ScriptedStep => {
    if (asksOnly(options)) return step(text("Well."));
    const done = toolsSince(options);
    const pick = (seed + index * 7) % 8;
    const spaceId = spaceIds[pick % spaceIds.length];
    if (done === 0) return step(call("enter_space", { spaceId }));
    if (done > 2) return step(text("Well."));
    if (pick === 0) return step(call("search", { query: "zqmark tea words" }));
    if (pick === 1) return step(call("read_messages", { limit: 10 }));
    if (pick === 2) return step(call("get_my_runs", {}));
    if (pick === 3 || pick === 7) return step(call("send_message", { text: `zqsaid${index}x, I noted` }));
    if (pick === 4) return step(call("set_memories", { memories: [{ key: `k${index}`, value: "noted" }] }));
    if (pick === 5) return step(call("block_load", { label: "garden" }));
    if (pick === 6) return step(call("note", { words: `zqcalled${index}x by name` }));
    return step(text("Well."));
  };

const atRest = (workspaceId: string, minds: readonly EntityRef[]): Promise<void> =>
  vi.waitFor(
    async () => {
      for (const mind of minds) {
        const runs = await runsOf(workspaceId, mind);
        expect(runs.filter(({ status }) => status === "running" || status === "waiting_reply")).toEqual([]);
        const waiting = (await inboxOf(workspaceId, mind)).filter(({ wakes, status }) => wakes && status !== "dead");
        expect(waiting).toEqual([]);
      }
    },
    { timeout: 20_000 },
  );

/** What is said, as far as the test knows: each with its marked word. */
type Said = { message: Message; mark: string; by: EntityRef; spaceId: string };

/** A tool whose calls show in the space. */
const note = { name: "note", description: "Notes", executionType: "internal", visible: true, confidential: "allowed" };

const open = async ({ seed }: Life) => {
  const house = await openHouse();
  const { workspaceId } = house;
  const people = [await house.person("Zqmona"), await house.person("Husam")] as const;
  const agents = [
    await house.agent(AgentConfig.parse({ name: "Zqliving", tools: [note] })),
    await house.agent(AgentConfig.parse({ name: "Timely", continuity: "timeline", tools: [note] })),
  ] as const;
  const everybody = [...people, ...agents];
  const spaces = [
    await house.space("Zqalpha", everybody),
    await house.space("Beta", everybody),
    await house.space("Zqboard", everybody, true),
  ] as const;
  const spaceIds = spaces.map(({ id }) => id);
  const model = scriptedModel(looking(spaceIds, seed));
  const [living] = agents;
  const block = { label: "garden", type: "core", content: "The zqgarden has medlars that ripen late in a cold autumn" };
  unwrap(await env.AGENT.getByName(living.id).createBlock(workspaceId, CreateBlock.parse(block), "system"));
  const archived = CreateArchival.parse({ content: "The zqarchive has medlars too, of an older kind" });
  const archivalId = ids.mintOwned("arch", living.id);
  unwrap(await env.AGENT.getByName(living.id).archive(workspaceId, archivalId, archived));
  const compartments = agents.map((agent) => ({ ...agent, id: compartmentId(ids, agent.id, spaces[2].id) }));
  return { house, workspaceId, people, agents, spaces, archivalId, minds: [...agents, ...compartments], model };
};
type World = Awaited<ReturnType<typeof open>>;

const key = ({ workspaceId }: World) => ({ kind: "key", workspaceId, keyId: "key" }) as const;

/** What happens beside a turn. */
const happens = async (world: World, what: Turn["beside"], index: number): Promise<void> => {
  const { workspaceId, people, agents, spaces } = world;
  const [living, timely] = agents;
  const beta = spaces[1].stub();
  if (what === "rename") {
    unwrap(await env.WORKSPACE.getByName(workspaceId).updateEntity(people[0].id, { name: `Zqmona ${index}` }));
  }
  if (what === "leave") await beta.removeMember(key(world), timely.id);
  if (what === "come") await beta.addMember(key(world), timely);
  if (what === "share") {
    const grant = { granteeId: timely.id, permission: "ReadOnly" } as const;
    unwrap(await env.AGENT.getByName(living.id).shareBlock(workspaceId, "garden", grant));
  }
  if (what === "crash")
    await runInDurableObject(agentStub(living), (_, state) => state.abort("a crash")).catch(() => undefined);
  await told(spaces[1].id);
};

/** The space that is taken out, or keeps messages for a while: an open or the confidential one. */
const chosen = ({ spaces }: World, seed: number) =>
  seed % 2 === 0 ? { space: spaces[0], name: "Zqalpha" } : { space: spaces[2], name: "Zqboard" };

/** Lets messages of a space, or of all, grow too old in two days. */
const keepTwoDays = async (world: World, { kind, seed }: Life): Promise<void> => {
  const { space } = chosen(world, seed);
  if (kind === "retention of a space") unwrap(await space.stub().update(key(world), { retentionDays: 2 }));
  else unwrap(await env.WORKSPACE.getByName(world.workspaceId).update({ retentionDays: 2 }));
};

/** The spaces, and the parts of minds, that are there in the end. */
const staying = (world: World, { kind, seed }: Life): Tellers => {
  if (kind === "workspace") return { ...world, spaces: [], agents: [], minds: [] };
  const ends = (what: string) => kind === what || kind === `deleted ${what}`;
  const { space } = chosen(world, seed);
  const isHere = ({ name }: EntityRef) => !ends("agent") || name !== "Zqliving";
  const isOpen = ({ id }: EntityRef) => world.agents.some((agent) => agent.id === id);
  return {
    workspaceId: world.workspaceId,
    spaces: world.spaces.filter(({ id }) => !ends("space") || id !== space.id),
    agents: world.agents.filter(isHere),
    minds: world.minds.filter((mind) => isHere(mind) && (!ends("space") || space !== world.spaces[2] || isOpen(mind))),
  };
};

/** Takes it out, and answers the marked words that are to be gone. */
const takeOut = async (world: World, life: Life, said: Said[]): Promise<string[]> => {
  const { kind, turns, seed } = life;
  const { workspaceId, people, agents, spaces, archivalId } = world;
  const [mona] = people;
  const [living] = agents;
  const { space: target, name } = chosen(world, seed);
  const workspace = env.WORKSPACE.getByName(workspaceId);
  const stub = env.AGENT.getByName(living.id);
  const marksOf = (isMeant: (one: Said) => boolean): string[] => said.filter(isMeant).map(({ mark }) => mark);
  if (kind === "messages") {
    const meant = said.filter((_, index) => (index + seed) % 3 > 0);
    for (const { message, spaceId, by } of meant) {
      const space = spaces.find(({ id }) => id === spaceId) ?? target;
      const isEdited = turns[said.findIndex((one) => one.message === message)]?.isEdited && by.type !== "agent";
      if (isEdited) unwrap(await space.stub().editMessage(space.as(by), message.id, "Something else altogether"));
      else unwrap(await space.stub().deleteMessage(key(world), message.id));
      await told(space.id);
    }
    return meant.map(({ mark }) => mark);
  }
  if (kind === "deleted space") {
    unwrap(await target.stub().remove(key(world)));
    return [...marksOf(({ spaceId }) => spaceId === target.id), name];
  }
  if (kind === "deleted agent") {
    unwrap(await workspace.removeEntity(living.id));
    // Else its workspace ends it.
    if (seed % 2 === 0) unwrap(await stub.remove(workspaceId));
    return ["zqgarden", "zqarchive"];
  }
  if (kind === "deleted documents") {
    unwrap(await stub.deleteBlock(workspaceId, "garden", "system", "system"));
    unwrap(await stub.deleteArchival(workspaceId, archivalId));
    return ["zqgarden", "zqarchive"];
  }
  if (isAged(kind)) {
    if (seed % 4 < 2) await keepTwoDays(world, life);
    for (const space of spaces) await runDurableObjectAlarm(space.stub() as unknown as DurableObjectStub);
    const since = new Date(Date.now() - 2 * dayMs).toISOString();
    const isOf = (spaceId: string) => kind === "retention of a workspace" || spaceId === target.id;
    return marksOf(({ spaceId, message }) => isOf(spaceId) && message.createdAt < since);
  }
  const id = { person: mona.id, space: target.id, agent: living.id, workspace: workspaceId }[kind];
  unwrap(await workspace.beginErasure({ kind, id }, { id: "key" }));
  await vi.waitFor(
    async () => expect(unwrap(await workspace.erasure(id))).toMatchObject({ state: "done", left: 0, waiting: [] }),
    { timeout: 20_000 },
  );
  if (kind === "person") return [...marksOf(({ by }) => by.id === mona.id), "Zqmona"];
  if (kind === "space") return [...marksOf(({ spaceId }) => spaceId === target.id), name];
  if (kind === "agent") return [...marksOf(({ by }) => by.id === living.id), "Zqliving", "zqgarden", "zqarchive"];
  return anyWords;
};

/** No row of what is ended holds one of these. */
const anyWords = [
  "zqmark",
  "zqsaid",
  "zqcalled",
  "Zqmona",
  "Zqalpha",
  "Zqboard",
  "Zqliving",
  "zqgarden",
  "zqarchive",
  "Husam",
  "Timely",
];

/** What the agents said by now, and what they called that shows. */
const ownWords = async ({ spaces, agents }: World): Promise<Said[]> => {
  const own = await Promise.all(
    spaces.map(async (space) =>
      (await space.messages()).flatMap((message): Said[] => {
        const by = agents.find(({ id }) => id === message.sender.id);
        const [mark] = /zq(said|called)\d+x/.exec(JSON.stringify(message)) ?? [];
        return by && mark !== undefined ? [{ message, mark, by, spaceId: space.id }] : [];
      }),
    ),
  );
  return own.flat();
};

/** Says something in a space, and waits for all. Answers what each agent there was given for it. */
const ask = async (world: World, { agents, minds }: Tellers, space: World["spaces"][number], words: string) => {
  const { model, people, workspaceId } = world;
  const before = model.calls.length;
  await space.post(people[1], words);
  const { members = [] } = unwrap(await space.stub().describe(key(world)));
  const there = agents.filter((agent) => members.some((member) => member.id === agent.id));
  const given = there.map(({ id, name }) =>
    vi.waitFor(() => {
      const prompts = model.calls.slice(before).map(({ prompt }) => JSON.stringify(prompt));
      const mine = prompts.find((each) => each.slice(0, 200).includes(id) && beginsFor(words).test(each));
      if (mine === undefined) throw new Error(`${name} was not asked: ${words}`);
      return [name, mine] as const;
    }, 20_000),
  );
  const told = await Promise.all(given);
  await vi.waitFor(() => atRest(workspaceId, minds), { timeout: 20_000 });
  return told;
};

/** What each agent is given in each space, and whatever is told of these words. */
const allTold = async (world: World, here: Tellers, words: string[]): Promise<Tellings> => {
  const given: Tellings = new Map();
  for (const space of world.spaces.filter(({ id }) => here.spaces.some((each) => each.id === id))) {
    const prompts = await ask(world, here, space, `${question} ${world.model.calls.length}`);
    for (const [name, prompt] of prompts) given.set(`what ${name} is given in ${space.id}`, prompt);
  }
  return new Map([...given, ...(await tellings(here, words))]);
};

/** Whether words that are told in a place are told there from then on. A timeline is shown its newest runs elsewhere alone. */
const isKeptIn = (place: string, { spaceId }: Said): boolean =>
  place.startsWith("what Timely") ? place.endsWith(spaceId) : !place.startsWith("context of Timely");

/** A deleted block or entry is found no more. What a model was given of it, and called, stays in its journal. */
const given = /^(journal|windows|runs) /;
const isOfDocuments = (kind: Kind): boolean => kind === "deleted documents" || kind === "deleted agent";

/** What is left in rows. An erasure says when it is done; a deletion is carried from mind to mind for a while. */
const leftInRows = async (world: World, one: Life, gone: string[]): Promise<string | undefined> => {
  const { minds } = staying(world, one);
  const ended = world.minds.filter((mind) => !minds.includes(mind));
  let left: string | undefined;
  const look = async (): Promise<void> => {
    left =
      (await rowWith(objectsOf(world), gone, isOfDocuments(one.kind) ? given : undefined)) ??
      (await rowWith(objectsOf({ ...world, spaces: [], minds: ended }).slice(0, -1), anyWords));
    expect(left).toBeUndefined();
  };
  const isErased = erased.some((kind) => kind === one.kind);
  const looked = isErased ? look() : vi.waitFor(look, { timeout: 20_000, interval: 500 });
  await looked.catch(() => undefined);
  return left;
};

/** Lives it. Answers all that was said. */
const live = async (world: World, one: Life): Promise<Said[]> => {
  const { people, agents, spaces, workspaceId } = world;
  const said = new Map<string, Said>();
  const listen = async (): Promise<void> => {
    for (const own of await ownWords(world)) said.set(own.mark, own);
  };
  // Words grow too old before a retention is set, or by it.
  if (isAged(one.kind) && one.seed % 4 > 1) await keepTwoDays(world, one);
  for (const [index, { words, by, place, isAlone, isEdited, rests, beside }] of one.turns.entries()) {
    const mark = `zqmark${index}x`;
    // There is always something to be taken out.
    const space = index === 0 ? chosen(world, one.seed).space : (spaces[place] ?? spaces[0]);
    const who = people[by] ?? people[0];
    const message = await space.post(who, isAlone ? mark : `${words} ${mark} ${words}`.trim());
    said.set(mark, { message, mark, by: who, spaceId: space.id });
    if (rests) await atRest(workspaceId, agents);
    // What an edit said last is gone with the rest.
    if (isEdited && one.kind !== "messages") {
      unwrap(await space.stub().editMessage(space.as(who), message.id, `${mark} anew`));
    }
    await happens(world, beside, index);
    if (!isAged(one.kind) || index !== Math.floor(one.turns.length / 2)) continue;
    await atRest(workspaceId, agents);
    await vi.waitFor(() => atRest(workspaceId, world.minds), { timeout: 20_000 });
    await listen();
    vi.useRealTimers();
  }
  await atRest(workspaceId, agents);
  await vi.waitFor(() => atRest(workspaceId, world.minds), { timeout: 20_000 });
  await listen();
  return [...said.values()];
};

/** Lives it, and takes something out. Answers what is wrong, and nothing where all is well. */
export const liveAndErase = async (one: Life): Promise<string | undefined> => {
  if (isAged(one.kind)) vi.useFakeTimers({ toFake: ["Date"], now: Date.now() - 3 * dayMs });
  const world = await open(one);
  const { agents, spaces, workspaceId, model } = world;
  const uninstall = installModel(model);
  try {
    const said = await live(world, one);
    const here = staying(world, one);
    const words = [...said.map(({ mark }) => mark), "zqgarden", "zqarchive"];
    const before = await allTold(world, here, words);
    const gone = await takeOut(world, one, said);
    if (here.spaces.length > 0) await ask(world, here, spaces[1], "What now?");
    const left = await leftInRows(world, one, gone);
    if (left !== undefined) return left;
    const calls = model.calls.length;
    const after = await allTold(world, here, words);
    after.set("a prompt", JSON.stringify(model.calls.slice(calls).map(({ prompt }) => prompt)));
    for (const [place, told] of after) {
      if (isOfDocuments(one.kind) && !place.startsWith("search")) continue;
      const word = gone.find((each) => told.includes(each));
      if (word !== undefined) return `${word} in ${place}`;
    }
    for (const [place, told] of before) {
      const kept = said.filter(
        (each) => !gone.includes(each.mark) && told.includes(each.mark) && isKeptIn(place, each),
      );
      const lost = kept.find(({ mark }) => !after.get(place)?.includes(mark));
      if (lost) return `${lost.mark} is gone too from ${place}`;
    }
    return await leftInRows(world, one, gone);
  } finally {
    vi.useRealTimers();
    for (const agent of agents) await env.AGENT.getByName(agent.id).remove(workspaceId);
    uninstall();
  }
};
