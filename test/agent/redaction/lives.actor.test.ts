import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import fc from "fast-check";
import { expect, test, vi } from "vitest";
import type { CallOptions } from "../../../src/models/language-model.ts";
import type { EntityRef } from "../../../src/protocol/rpc.ts";
import { SearchQuery } from "../../../src/protocol/search.ts";
import { unwrap } from "../../../src/shared/errors.ts";
import { compartmentId } from "../../../src/shared/ids.ts";
import { allRows } from "../../support/rows.ts";
import { call, type ScriptedStep, step, text } from "../../support/scripted-model.ts";
import { agentStub, ids, inboxOf, openHouse, runsOf, scripted, told } from "../fixture.ts";

/**
 * Random lives of an open and a confidential space with agents of both continuities. Some messages hold a marked word. In the
 * end each of them is deleted, or edited so that the word is gone: then no row of any object holds it, nor any answer.
 */
type Life = { texts: { words: string; marked: boolean; board: boolean; edits: boolean }[]; seed: number };

const life: fc.Arbitrary<Life> = fc.record({
  seed: fc.nat(1000),
  texts: fc.array(
    fc.record({
      words: fc.constantFrom("", 'a "quoted" line\nand one more', "naïve 😀 words\\ with all sorts of signs", "tea"),
      marked: fc.boolean(),
      board: fc.boolean(),
      edits: fc.boolean(),
    }),
    { minLength: 3, maxLength: 6 },
  ),
});

const toolsSince = ({ prompt }: CallOptions): number =>
  prompt.slice(prompt.findLastIndex(({ role }) => role === "user")).filter(({ role }) => role === "tool").length;

/** Looks around by the tools that tell what was said, and says little. */
const model =
  (spaceIds: string[], seed: number) =>
  (options: CallOptions, index: number): ScriptedStep => {
    const done = toolsSince(options);
    const pick = (seed + index * 7) % 6;
    const spaceId = spaceIds[pick % spaceIds.length];
    if (done === 0) return step(call("enter_space", { spaceId }));
    if (done > 2) return step(text("Well."));
    if (pick === 0) return step(call("search", { query: "zqmark tea words" }));
    if (pick === 1) return step(call("read_messages", { limit: 10 }));
    if (pick === 2) return step(call("get_my_runs", {}));
    if (pick === 3) return step(call("send_message", { text: `Noted ${index}.` }));
    if (pick === 4) return step(call("set_memories", { memories: [{ key: `k${index}`, value: "noted" }] }));
    return step(text("Well."));
  };

const rowsWith = (object: unknown, words: string): Promise<string[]> =>
  runInDurableObject(object as DurableObjectStub, (_, { storage }) =>
    allRows(storage).filter((row) => row.includes(words)),
  );

const atRest = (workspaceId: string, minds: EntityRef[]): Promise<void> =>
  vi.waitFor(
    async () => {
      for (const mind of minds) {
        expect((await runsOf(workspaceId, mind)).filter(({ status }) => status === "running")).toEqual([]);
        expect((await inboxOf(workspaceId, mind)).filter(({ wakes, status }) => wakes && status !== "dead")).toEqual(
          [],
        );
      }
    },
    { timeout: 20_000 },
  );

const exported = async (workspaceId: string, { id }: EntityRef): Promise<string> => {
  let all = "";
  for (let from = null; ; ) {
    const page = unwrap(await env.AGENT.getByName(id).exportPage(workspaceId, from));
    all += page.text;
    if (page.next === null) return all;
    from = page.next as never;
  }
};

const live = async ({ texts, seed }: Life): Promise<void> => {
  const house = await openHouse();
  const { workspaceId } = house;
  const husam = await house.person("Husam");
  const agents = [await house.agent({ name: "Living" }), await house.agent({ name: "Timely", continuity: "timeline" })];
  const spaces = [
    await house.space("Alpha", [husam, ...agents]),
    await house.space("Board", [husam, ...agents], true),
  ] as const;
  const minds = [...agents, ...agents.map((agent) => ({ ...agent, id: compartmentId(ids, agent.id, spaces[1].id) }))];
  scripted(
    model(
      spaces.map(({ id }) => id),
      seed,
    ),
  );
  const posted = [];
  for (const [index, { words, marked, board, edits }] of texts.entries()) {
    const mark = `zqmark${index}`;
    const space = board ? spaces[1] : spaces[0];
    const said = `${words} ${marked ? mark : "plain"} ${words}`.trim();
    const message = await space.post(husam, said);
    if (index % 2 === 0) await atRest(workspaceId, agents);
    if (marked) posted.push({ message, mark, space, edits });
  }
  // The compartments begin with what is said in the confidential space.
  await spaces[1].post(husam, "And you?");
  await spaces[0].post(husam, "And you?");
  await atRest(workspaceId, minds);
  const key = { kind: "key", workspaceId, keyId: "key" } as const;
  for (const { message, space, edits } of posted) {
    if (edits) unwrap(await space.stub().editMessage(space.as(husam), message.id, "Something else altogether"));
    else unwrap(await space.stub().deleteMessage(key, message.id));
    await told(space.id);
  }
  await spaces[0].post(husam, "What now?");
  await atRest(workspaceId, minds);
  const objects = [
    ...minds.map(agentStub),
    ...spaces.map(({ id }) => env.SPACE.getByName(id)),
    env.WORKSPACE.getByName(workspaceId),
  ];
  for (const { mark, space } of posted) {
    await vi.waitFor(async () => {
      for (const object of objects) expect(await rowsWith(object, mark)).toEqual([]);
    });
    const query = SearchQuery.parse({ query: mark, mode: "fts" });
    for (const mind of minds) {
      const agent = env.AGENT.getByName(mind.id);
      const runs = await runsOf(workspaceId, mind);
      const answers = [
        await Promise.all(runs.map(({ id }) => agent.run(workspaceId, id))),
        await agent.context(workspaceId),
        await agent.search(workspaceId, query),
        await agent.inbox(workspaceId, { limit: 100 }),
      ];
      expect(JSON.stringify(answers)).not.toContain(mark);
    }
    for (const agent of agents) expect(await exported(workspaceId, agent)).not.toContain(mark);
    expect(JSON.stringify([await space.messages(), await space.stub().latest(key)])).not.toContain(mark);
  }
};

test("[L4] whatever an agent's life was, nothing holds what was deleted or edited away", {
  timeout: 300_000,
}, async () => {
  await fc.assert(fc.asyncProperty(life, live), { numRuns: 5, endOnFailure: true });
});
