import * as z from "zod";
import { Message } from "../protocol/message.ts";
import { Space, SpaceListItem } from "../protocol/space.ts";
import { quoteJson } from "../shared/quote.ts";
import { askFor, type Resources } from "./toolset.ts";

/** Spaces as resources, such as `colloquy://spaces/spc_…`: the space with its members, and its newest messages. */
const mimeType = "application/json";
const uriPattern = /^colloquy:\/\/spaces\/(spc_[0-9A-Za-z]+)$/;
const messagesShown = 50;

const Listed = z.object({ items: z.array(SpaceListItem), nextCursor: z.string().nullable() });

export const spaceResources: Resources = {
  templates: [
    {
      uriTemplate: "colloquy://spaces/{id}",
      name: "space",
      description: `A space with its members, and its newest ${messagesShown} messages`,
      mimeType,
    },
  ],

  async list(ask, cursor) {
    const after = cursor === undefined ? "" : `?cursor=${encodeURIComponent(cursor)}`;
    const { items, nextCursor } = await askFor(ask, Listed, `/v1/spaces${after}`);
    const resources = items.map(({ id, name }) => ({ uri: `colloquy://spaces/${id}`, name, mimeType }));
    return { resources, ...(nextCursor !== null && { nextCursor }) };
  },

  async read(ask, uri) {
    const id = uriPattern.exec(uri)?.[1];
    if (id === undefined) return undefined;
    const [{ space }, { items }] = await Promise.all([
      askFor(ask, z.object({ space: Space }), `/v1/spaces/${id}`),
      askFor(ask, z.object({ items: z.array(Message) }), `/v1/spaces/${id}/messages?limit=${messagesShown}`),
    ]);
    return { mimeType, text: quoteJson({ space, messages: items }) };
  },
};
