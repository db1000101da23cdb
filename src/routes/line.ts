import * as z from "zod";
import { unwrap } from "../shared/errors.ts";
import type { HttpContext } from "./http-context.ts";
import { actingEntityId } from "./in-space.ts";
import { Resource } from "./route.ts";
import { streamQuery } from "./route-parts.ts";
import { asEvents, requireCursor, requireUpgrade, socketFrom } from "./stream.ts";

const query = streamQuery.extend({
  cursor: z.string().optional().meta({
    description: "The cursor of the last notification; left out: those from now on; 0: all that are unread",
    example: "42",
  }),
});

/** Asks the person for a line as the caller. */
const openLine = async (context: HttpContext, cursor: string | undefined): Promise<Response> => {
  requireCursor(cursor);
  const principal = context.get("principal");
  const entityId = actingEntityId(principal);
  const url = new URL("https://person/v1/stream");
  if (cursor !== undefined) url.searchParams.set("cursor", cursor);
  return unwrap(await socketFrom(context.env.PERSON.getByName(entityId), context, url, { ...principal, entityId }));
};

export const line = new Resource("Stream");

line.route("GET /v1/stream", {
  summary: "All of a person's spaces over one WebSocket",
  description:
    "The line tells how each space stands, what needs the person, and notifications. `{type: subscribe, spaceId}` adds the frames of up to five spaces, each as `{spaceId, frame}`; a client's frame for a space is one of its stream with `spaceId`.",
  access: "line",
  query,
  responses: { 101: { description: "The socket" } },
  problems: ["not_found", "invalid_cursor", "upgrade_required", "acting_entity_required"],
  handle: async ({ context, query: { cursor } }) => {
    requireUpgrade(context, "use /v1/events for Server-Sent Events");
    return openLine(context, cursor);
  },
});

line.route("GET /v1/events", {
  summary: "The same line as Server-Sent Events, without subscriptions",
  description:
    "`event:` is the frame's type, `id:` the cursor of notifications, `data:` the frame. When the line closes, the last event is `closed` with `{code, reason}`.",
  access: "line",
  query,
  headers: z.object({ "last-event-id": z.string().optional() }),
  responses: { 200: { description: "The events", content: { "text/event-stream": { schema: z.string() } } } },
  problems: ["not_found", "invalid_cursor", "acting_entity_required"],
  handle: async ({ context, query, headers }) => {
    const cursor = headers["last-event-id"] || query.cursor;
    return asEvents(context, await openLine(context, cursor), cursor !== undefined);
  },
});
