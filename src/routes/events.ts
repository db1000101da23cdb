import { createRoute, z } from "@hono/zod-openapi";
import { access } from "./access.ts";
import { createRoutes } from "./house.ts";
import { pathId, problems } from "./route-parts.ts";
import { bridge } from "./server-sent-events.ts";
import { cursorQuery, openSocket, requireCursor } from "./stream.ts";

export const events = createRoutes().openapi(
  createRoute({
    method: "get",
    path: "/v1/spaces/{spaceId}/events",
    tags: ["Stream"],
    summary: "The same events as Server-Sent Events",
    description:
      "`event:` is the frame's type, `id:` the cursor of durable ones, `data:` the frame. When the space closes the stream, the last event is `closed` with `{code, reason}`.",
    ...access("stream"),
    request: {
      params: z.object({ spaceId: pathId("spc", "the space") }),
      query: z.object({ cursor: cursorQuery }),
      headers: z.object({ "last-event-id": z.string().optional() }),
    },
    responses: {
      200: { description: "The events", content: { "text/event-stream": { schema: z.string() } } },
      ...problems("not_found", "invalid_cursor", "acting_entity_required", "limit_reached"),
    },
  }),
  async (context) => {
    const lastEventId = context.req.valid("header")["last-event-id"] || undefined;
    const cursor = requireCursor(lastEventId ?? context.req.valid("query").cursor);
    const answer = await openSocket(context, context.req.valid("param").spaceId, cursor);
    const socket = answer.webSocket;
    if (!socket) return answer;
    const headers = { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache, no-transform" };
    if (context.req.method !== "HEAD") return new Response(bridge(socket, context.req.raw.signal), { headers });
    socket.accept();
    socket.close(1000, "only the headers were asked for");
    return new Response(null, { headers });
  },
);
