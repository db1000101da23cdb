import * as z from "zod";
import { Block, BlockChange, BlockDetail, EditedBlock } from "../../src/protocol/block.ts";
import { call, expectOk, openHouse } from "../support/house.ts";

/** An agent and its blocks over HTTP, as tests of their routes use them. */
export const Items = <Item extends z.ZodType>(item: Item) =>
  z.object({ items: z.array(item), nextCursor: z.string().nullable() });

export const openAgent = async (name = "Analyst", house?: Awaited<ReturnType<typeof openHouse>>) => {
  const home = house ?? (await openHouse());
  const agent = await home.agent({ name });
  const at = `/v1/agents/${agent.id}/blocks`;
  const bearer = home.secretKey;
  const send = (method: string, path: string, body?: unknown) => call(`${at}${path}`, { method, bearer, body });
  return {
    house: home,
    agent,
    send,
    create: async (body: object) =>
      (await expectOk(z.object({ block: BlockDetail }), send("POST", "", { label: "notes", ...body }))).block,
    read: (label = "notes", query = "") => expectOk(BlockDetail, send("GET", `/${label}${query}`)),
    list: async () => (await expectOk(Items(Block), send("GET", ""))).items,
    edit: (operations: unknown, more: object = {}, label = "notes") =>
      send("POST", `/${label}/operations`, {
        operations: Array.isArray(operations) ? operations : [operations],
        ...more,
      }),
    edited: (operations: unknown, more: object = {}, label = "notes") =>
      expectOk(
        EditedBlock,
        send("POST", `/${label}/operations`, {
          operations: Array.isArray(operations) ? operations : [operations],
          ...more,
        }),
      ),
    history: async () => (await expectOk(Items(BlockChange), send("GET", "/notes/history"))).items,
  };
};

export const set = (text: string) => ({ op: "set_text", text });
export const append = (text: string) => ({ op: "append_text", text });
