import * as z from "zod";
import { Message } from "../../src/protocol/message.ts";
import { call, expectOk } from "../support/house.ts";

/** Each kind of agent, by its two switches. */
export const kinds = ["consciousness", "timeline"].flatMap((continuity) =>
  ["simple", "threaded"].map((messaging) => ({ continuity, messaging })),
);

/** The first page of a list over HTTP. */
export const listed = async <Item extends z.ZodType>(item: Item, path: string, bearer: string) =>
  (await expectOk(z.object({ items: z.array(item) }), call(path, { bearer }))).items;

export const messagesIn = (spaceId: string, bearer: string): Promise<Message[]> =>
  listed(Message, `/v1/spaces/${spaceId}/messages`, bearer);
