import { env } from "cloudflare:workers";
import { expect, onTestFinished, test, vi } from "vitest";
import * as z from "zod";
import { Message, RelatedItem } from "../../src/protocol/message.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { compartmentId } from "../../src/shared/ids.ts";
import { call, expectOk, ids, openHouse } from "../support/house.ts";
import { rowsWith } from "../support/rows.ts";
import { call as callTool, installModel, scriptedModel, step, text } from "../support/scripted-model.ts";
import { problemIn } from "./operations.ts";

/** What agents wrote down of a message, and its deletion with the message. */
const Deleted = z.object({ message: Message, related: z.array(RelatedItem), removed: z.array(RelatedItem).optional() });

const open = async () => {
  const house = await openHouse();
  const [mona, boss] = [await house.person("Mona"), await house.person("Boss", "admin")];
  const agent = await house.agent({ name: "Scribe" });
  const space = await house.space("Orchard", [mona, boss, agent]);
  const model = scriptedModel([
    step(callTool("block_create", { label: "fruit", content: "about the orchard" })),
    step(callTool("recall", { op: "insert", content: "Mona knows an orchard" })),
    step(text("Kept.")),
  ]);
  onTestFinished(installModel(model));
  const message = await house.say(space.id, mona, "I like the quinces of the old orchard");
  const scribe = env.AGENT.getByName(agent.id);
  await vi.waitFor(async () => {
    const { items } = unwrap(await scribe.runs(house.workspaceId, { limit: 1 }));
    expect(items[0]?.status).toBe("completed");
  });
  const kept = async () => [
    ...unwrap(await scribe.blocks(house.workspaceId)).map(({ label }) => label),
    ...unwrap(await scribe.archival(house.workspaceId, { limit: 10 })).items.map(({ content }) => content),
  ];
  const remove = (query: string, bearer: string) =>
    call(`/v1/spaces/${space.id}/messages/${message.id}${query}`, { method: "DELETE", bearer });
  return { house, mona, boss, agent, space, kept, remove };
};

const both = ["fruit", "Mona knows an orchard"];

test("[L4] what agents wrote down of a message is deleted with it where an admin asks so", async () => {
  const { mona, boss, kept, remove } = await open();
  expect((await problemIn(await remove("?related=true", mona.token))).code).toBe("forbidden");
  expect((await problemIn(await remove("?related=all", boss.token))).code).toBe("invalid_request");
  const offered = await expectOk(Deleted, remove("", boss.token));
  expect(offered).toMatchObject({ message: { deleted: {} }, related: [{ kind: "block" }, { kind: "archival" }] });
  expect(offered.removed).toBeUndefined();
  expect(await kept()).toEqual(both);
  const { related, removed } = await expectOk(Deleted, remove("?related=true", boss.token));
  expect([related, removed]).toEqual([[], offered.related]);
  expect(await kept()).toEqual([]);
  expect(await expectOk(Deleted, remove("?related=true", boss.token))).toMatchObject({ related: [], removed: [] });
});

test("[L4] who said a message deletes it alone: what agents wrote down stays", async () => {
  const { mona, kept, remove } = await open();
  const { related } = await expectOk(Deleted, remove("?related=false", mona.token));
  expect(related).toEqual([]);
  expect(await kept()).toEqual(both);
});

test.each([
  ["stays open", {}],
  ["became confidential since", { confidential: true }],
])("[L4] [C19] so is what a confidential space has of one that %s, by who reads that", async (_, changes) => {
  const { house, mona, boss, agent, space, kept, remove } = await open();
  const board = await house.space("Board", [mona, agent], { confidential: true });
  const scripted = scriptedModel([
    step(callTool("block_create", { label: "inside", content: "the quinces, for the board" })),
    step(callTool("recall", { op: "insert", content: "quinces concern the board" })),
    step(text("Kept.")),
    step(callTool("block_create", { label: "later", content: "of something else" })),
    step(text("Kept.")),
  ]);
  onTestFinished(installModel(scripted));
  const inside = env.AGENT.getByName(compartmentId(ids, agent.id, board.id));
  const ask = async (count: number): Promise<void> => {
    await house.say(board.id, mona, "note that");
    await vi.waitFor(async () => {
      const { items } = unwrap(await inside.runs(house.workspaceId, { limit: 9 }));
      expect(items.filter(({ status }) => status === "completed")).toHaveLength(count);
    });
  };
  await ask(1);
  await ask(2);
  const secrets = async () => [
    ...unwrap(await inside.blocks(house.workspaceId)).flatMap(({ label, sharedFrom }) => (sharedFrom ? [] : label)),
    ...unwrap(await inside.archival(house.workspaceId, { limit: 9 })).items.map(({ content }) => content),
  ];
  const all = ["inside", "later", "quinces concern the board"];
  const changed = { method: "PATCH", bearer: house.secretKey, body: changes };
  expect((await call(`/v1/spaces/${space.id}`, changed)).status).toBe(200);
  const { removed } = await expectOk(Deleted, remove("?related=true", boss.token));
  expect(removed?.map(({ spaceId }) => spaceId)).toEqual([undefined, undefined]);
  expect(await kept()).toEqual([]);
  expect(await secrets()).toEqual(all);
  const gone = await expectOk(Deleted, remove("?related=true", house.secretKey));
  expect(gone.removed).toMatchObject([
    { kind: "block", label: "inside", spaceId: board.id },
    { kind: "archival", spaceId: board.id },
  ]);
  expect(await secrets()).toEqual(["later"]);
});

test("[L4] [C21] so is what other spaces have of what was said in a private one from outside", async () => {
  const { house, mona, agent, space } = await open();
  const board = await house.space("Board", [mona, agent], { confidential: true });
  const vault = await house.space("Vault", [mona, agent], { confidential: true });
  const scripted = scriptedModel([
    step(callTool("enter_space", { spaceId: board.id })),
    step(callTool("send_message", { text: "The quinces are ripe" })),
    step(text("Told.")),
    step(callTool("block_create", { label: "vaulted", content: "the board hears of quinces" })),
    step(text("Kept.")),
  ]);
  onTestFinished(installModel(scripted));
  const done = (mindId: string, count: number) =>
    vi.waitFor(async () => {
      const { items } = unwrap(await env.AGENT.getByName(mindId).runs(house.workspaceId, { limit: 9 }));
      expect(items.filter(({ status }) => status === "completed")).toHaveLength(count);
    });
  await house.say(space.id, mona, "Tell the board");
  await done(agent.id, 2);
  await house.say(vault.id, mona, "Keep that");
  await done(compartmentId(ids, agent.id, vault.id), 1);
  const said = await expectOk(
    z.object({ items: z.array(Message) }),
    call(`/v1/spaces/${board.id}/messages`, { bearer: house.secretKey }),
  );
  const at = `/v1/spaces/${board.id}/messages/${said.items[0]?.id}?related=true`;
  for (const removed of [[{ kind: "block", label: "vaulted", agentId: agent.id, spaceId: vault.id }], []]) {
    const gone = await expectOk(Deleted, call(at, { method: "DELETE", bearer: house.secretKey }));
    expect(gone).toMatchObject({ related: [], removed });
  }
});

test("[L4] a deleted block leaves no words in answers to its edits, nor in the index", async () => {
  const { house, mona, agent } = await open();
  const space = await house.space("Cellar", [mona, agent]);
  const operations = [{ op: "replace_text", old: "apples", new: "quinces from beyond the river" }];
  const model = scriptedModel([
    step(callTool("block_create", { label: "stores", content: "apples" })),
    step(callTool("block_edit", { label: "stores", operations })),
    step(text("Kept.")),
  ]);
  onTestFinished(installModel(model));
  const message = await house.say(space.id, mona, "Store the quinces from beyond the river");
  const scribe = env.AGENT.getByName(agent.id);
  await vi.waitFor(async () => {
    const block = unwrap(await scribe.block(house.workspaceId, "stores"));
    expect(block.value).toBe("quinces from beyond the river");
  });
  const query = { query: "river", mode: "fts", types: ["block"], limit: 9 } as const;
  expect(unwrap(await scribe.search(house.workspaceId, { ...query, types: [...query.types] })).items).toHaveLength(1);
  const at = `/v1/spaces/${space.id}/messages/${message.id}?related=true`;
  const { removed } = await expectOk(Deleted, call(at, { method: "DELETE", bearer: house.secretKey }));
  expect(removed).toMatchObject([{ kind: "block", label: "stores" }]);
  await vi.waitFor(async () => expect(await rowsWith(scribe, "beyond the river")).toEqual([]));
});
