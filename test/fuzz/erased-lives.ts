import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import fc from "fast-check";
import { expect, vi } from "vitest";
import type { CallOptions } from "../../src/models/language-model.ts";
import { CreateBlock } from "../../src/protocol/block.ts";
import type { Message } from "../../src/protocol/message.ts";
import type { EntityRef } from "../../src/protocol/rpc.ts";
import { SearchQuery } from "../../src/protocol/search.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { compartmentId } from "../../src/shared/ids.ts";
import { agentStub, exported, ids, inboxOf, openHouse, runsOf, told } from "../agent/fixture.ts";
import { rowsWith } from "../support/rows.ts";
import { call, installModel, type ScriptedStep, scriptedModel, step, text } from "../support/scripted-model.ts";

/**
 * Random lives of two people and two agents in two open spaces and a confidential one. All that is said holds a marked word of
 * its own, and so do names and a shared block. In the end one thing is taken out: messages, a person, a space, an agent, or the
 * workspace. Then no row of any object holds its marked words, no index, no export and no answer; and what others said is there.
 */
export const kinds = ["messages", "person", "space", "agent", "workspace"] as const;
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

/** Looks around by the tools that tell what was said, and says marked words of its own. */
const looking =
  (spaceIds: string[], seed: number) =>
  (options: CallOptions, index: number): ScriptedStep => {
    const done = toolsSince(options);
    const pick = (seed + index * 7) % 8;
    const spaceId = spaceIds[pick % spaceIds.length];
    if (done === 0) return step(call("enter_space", { spaceId }));
    if (done > 2) return step(text("Well."));
    if (pick === 0) return step(call("search", { query: "zqmark tea words" }));
    if (pick === 1) return step(call("read_messages", { limit: 10 }));
    if (pick === 2) return step(call("get_my_runs", {}));
    if (pick === 3 || pick === 7) return step(call("send_message", { text: `I noted zqsaid${index}x of my own.` }));
    if (pick === 4) return step(call("set_memories", { memories: [{ key: `k${index}`, value: "noted" }] }));
    if (pick === 5) return step(call("block_load", { label: "garden" }));
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

const open = async () => {
  const house = await openHouse();
  const { workspaceId } = house;
  const people = [await house.person("Zqmona"), await house.person("Husam")] as const;
  const agents = [
    await house.agent({ name: "Zqliving" }),
    await house.agent({ name: "Timely", continuity: "timeline" }),
  ] as const;
  const everybody = [...people, ...agents];
  const spaces = [
    await house.space("Zqalpha", everybody),
    await house.space("Beta", everybody),
    await house.space("Board", everybody, true),
  ] as const;
  const [living] = agents;
  const block = { label: "garden", type: "core", content: "The zqgarden has medlars that ripen late in a cold autumn" };
  unwrap(await env.AGENT.getByName(living.id).createBlock(workspaceId, CreateBlock.parse(block), "system"));
  const compartments = agents.map((agent) => ({ ...agent, id: compartmentId(ids, agent.id, spaces[2].id) }));
  return { house, workspaceId, people, agents, spaces, minds: [...agents, ...compartments] };
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

/** Takes it out, and answers the marked words that are to be gone. */
const takeOut = async (world: World, { kind, turns }: Life, said: Said[]): Promise<string[]> => {
  const { workspaceId, people, agents, spaces } = world;
  const [mona] = people;
  const [living] = agents;
  const [alpha] = spaces;
  const workspace = env.WORKSPACE.getByName(workspaceId);
  if (kind === "messages") {
    for (const [index, { message, spaceId, by }] of said.entries()) {
      const space = spaces.find(({ id }) => id === spaceId) ?? alpha;
      const isEdited = turns[index]?.isEdited && by.type !== "agent";
      if (isEdited) unwrap(await space.stub().editMessage(space.as(by), message.id, "Something else altogether"));
      else unwrap(await space.stub().deleteMessage(key(world), message.id));
      await told(space.id);
    }
    return said.map(({ mark }) => mark);
  }
  const id = { person: mona.id, space: alpha.id, agent: living.id, workspace: workspaceId }[kind];
  unwrap(await workspace.beginErasure({ kind, id }, { id: "key" }));
  await vi.waitFor(
    async () => expect(unwrap(await workspace.erasure(id))).toMatchObject({ state: "done", left: 0, waiting: [] }),
    { timeout: 20_000 },
  );
  const marksOf = (isMeant: (one: Said) => boolean): string[] => said.filter(isMeant).map(({ mark }) => mark);
  if (kind === "person") return [...marksOf(({ by }) => by.id === mona.id), "Zqmona"];
  if (kind === "space") return [...marksOf(({ spaceId }) => spaceId === alpha.id), "Zqalpha"];
  if (kind === "agent") return [...marksOf(({ by }) => by.id === living.id), "Zqliving", "zqgarden"];
  return ["zqmark", "zqsaid", "Zqmona", "Zqalpha", "Zqliving", "zqgarden", "Husam", "Timely"];
};

/** All that was said, the agents' own words too. */
const allSaid = async ({ spaces, agents }: World, posted: Said[]): Promise<Said[]> => {
  const own = await Promise.all(
    spaces.map(async (space) =>
      (await space.messages()).flatMap((message): Said[] => {
        const by = agents.find(({ id }) => id === message.sender.id);
        const [mark] = /zqsaid\d+x/.exec(message.text ?? "") ?? [];
        return by && mark !== undefined ? [{ message, mark, by, spaceId: space.id }] : [];
      }),
    ),
  );
  return [...posted, ...own.flat()];
};

/** Where one of the words still is; undefined where none is anywhere. */
const found = async (world: World, kind: Kind, words: string[]): Promise<string | undefined> => {
  const { workspaceId, agents, spaces, minds } = world;
  const objects: [string, unknown][] = [
    ...minds.map((mind): [string, unknown] => [`a mind of ${mind.name}`, agentStub(mind)]),
    ...spaces.map(({ id }): [string, unknown] => ["a space", env.SPACE.getByName(id)]),
    ["the workspace", env.WORKSPACE.getByName(workspaceId)],
  ];
  for (const word of words) {
    for (const [name, object] of objects) {
      const [row] = await rowsWith(object, word);
      if (row !== undefined)
        return `${word} in ${name}: ${row.slice(Math.max(0, row.indexOf(word) - 300)).slice(0, 500)}`;
    }
    if (kind === "workspace") continue;
    for (const agent of agents.filter((_, index) => kind !== "agent" || index > 0)) {
      const query = SearchQuery.parse({ query: word, mode: "fts" });
      const asked = env.AGENT.getByName(agent.id);
      const { items } = unwrap(await asked.search(workspaceId, query));
      const answers = [items, await asked.context(workspaceId), await exported(workspaceId, agent)];
      if (JSON.stringify(answers).includes(word)) return `${word} in what ${agent.name} answers`;
    }
  }
  return undefined;
};

/** An erasure says when it is done. A deletion is carried from mind to mind for a while. */
const leftOf = async (world: World, kind: Kind, words: string[]): Promise<string | undefined> => {
  if (kind !== "messages") return found(world, kind, words);
  let left: string | undefined;
  const look = async (): Promise<void> => {
    left = await found(world, kind, words);
    expect(left).toBeUndefined();
  };
  await vi.waitFor(look, { timeout: 20_000, interval: 500 }).catch(() => undefined);
  return left;
};

/** Lives it. Answers what is wrong, and nothing where all is well. */
export const liveAndErase = async (one: Life): Promise<string | undefined> => {
  const world = await open();
  const { people, agents, spaces, workspaceId, minds } = world;
  const uninstall = installModel(
    scriptedModel(
      looking(
        spaces.map(({ id }) => id),
        one.seed,
      ),
    ),
  );
  try {
    const posted: Said[] = [];
    for (const [index, { words, by, place, isAlone, isEdited, rests, beside }] of one.turns.entries()) {
      const mark = `zqmark${index}x`;
      const space = spaces[place] ?? spaces[0];
      const who = people[by] ?? people[0];
      const message = await space.post(who, isAlone ? mark : `${words} ${mark} ${words}`.trim());
      posted.push({ message, mark, by: who, spaceId: space.id });
      if (rests) await atRest(workspaceId, agents);
      // What an edit said last is gone with the rest.
      if (isEdited && one.kind !== "messages") {
        unwrap(await space.stub().editMessage(space.as(who), message.id, `${mark} anew`));
      }
      await happens(world, beside, index);
    }
    for (const space of [spaces[2], spaces[1]]) await space.post(people[1], "And you?");
    await atRest(workspaceId, agents);
    await vi.waitFor(() => atRest(workspaceId, minds), { timeout: 20_000 });
    const said = await allSaid(world, posted);
    // Each mind's index has by then what the mind knows.
    const query = SearchQuery.parse({ query: "zqmark*", mode: "fts" });
    for (const { id } of minds) unwrap(await env.AGENT.getByName(id).search(workspaceId, query));
    const gone = await takeOut(world, one, said);
    if (one.kind !== "workspace") await spaces[1].post(people[1], "What now?");
    const left =
      one.kind === "workspace" ? [] : one.kind === "agent" ? minds.filter((_, index) => index % 2 === 1) : minds;
    await atRest(workspaceId, left.slice(0, one.kind === "agent" ? 1 : 2));
    const wrong = await leftOf(world, one.kind, gone);
    if (wrong !== undefined || one.kind === "workspace" || one.kind === "messages") return wrong;
    const kept = said.find(({ mark, spaceId }) => !gone.includes(mark) && spaceId === spaces[1].id);
    const isThere = !kept || (await rowsWith(env.SPACE.getByName(spaces[1].id), kept.mark)).length > 0;
    return isThere ? undefined : `${kept.mark} is gone too`;
  } finally {
    for (const agent of agents) await env.AGENT.getByName(agent.id).remove(workspaceId);
    uninstall();
  }
};
