import { env } from "cloudflare:workers";
import { expect, onTestFinished, test, vi } from "vitest";
import * as z from "zod";
import { Message, RelatedItem } from "../../src/protocol/message.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { call, expectOk, openHouse } from "../support/house.ts";
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
  return { house, mona, boss, kept, remove };
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
