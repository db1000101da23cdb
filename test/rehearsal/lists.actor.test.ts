import { beforeAll, expect, test, vi } from "vitest";
import { loadLoro } from "../../src/agent/memory/documents/document.ts";
import { Block, BlockDetail } from "../../src/protocol/block.ts";
import { call, expectOk, openHouse } from "../support/house.ts";
import { kinds, listed, messagesIn } from "./listed.ts";

// The first document brings up what it is made with.
beforeAll(() => loadLoro(), 60_000);

test.each(kinds)(
  "$continuity, $messaging: a list is begun, shared, changed and told, as a person edits it",
  async (kind) => {
    const house = await openHouse();
    const husam = await house.person("Husam");
    const keeper = await house.agent({ name: "Keeper", ...kind });
    const space = await house.space("Kitchen", [husam, await house.person("Sara"), keeper]);
    const bearer = husam.token;
    const answers = async (): Promise<string[]> =>
      (await messagesIn(space.id, bearer)).flatMap(({ sender, text }) => (sender.id === keeper.id && text) || []);
    const ask = async (text: string): Promise<string | undefined> => {
      const before = (await answers()).length;
      await house.say(space.id, husam, `@Keeper ${text}`);
      await vi.waitFor(async () => expect((await answers()).length).toBe(before + 1), { timeout: 15_000 });
      return (await answers()).at(-1);
    };
    const at = `/v1/spaces/${space.id}/agents/${keeper.id}/blocks/shopping`;
    const item = (text: string, done = false) => ({ text, done });

    expect(await ask("add milk and tea to the shopping list")).toContain("I began the shopping list");
    expect(await listed(Block, `/v1/spaces/${space.id}/blocks`, bearer)).toMatchObject([
      { label: "shopping", permission: "ReadWrite", sharedFrom: { agentName: "Keeper" } },
    ]);
    const operations = [{ op: "set_item", index: 0, item: item("oat milk") }];
    await call(`${at}/operations`, { bearer, body: { operations } });
    expect(await ask("add rice to the shopping list")).toBe('Done: "rice" is on the shopping list.');
    expect(await ask("cross off tea from the shopping list")).toBe('Done: I crossed off "tea".');
    expect(await ask("what is on the shopping list?")).toBe("On the shopping list: oat milk, rice. Crossed off: tea.");
    const { value } = await expectOk(BlockDetail, call(at, { bearer }));
    expect(value).toEqual([item("oat milk"), item("tea", true), item("rice")]);
  },
);
