import * as z from "zod";
import { type Principal, principalHeader } from "../protocol/principal.ts";
import { ColloquyError, type Outcome, ok, Problem, refuse } from "../shared/errors.ts";
import type { HttpContext } from "./http-context.ts";
import { inSpace, requireParticipant } from "./in-space.ts";
import { Resource } from "./route.ts";
import { streamQuery } from "./route-parts.ts";
import { bridge } from "./server-sent-events.ts";

const socketHeaders = [
  "sec-websocket-key",
  "sec-websocket-version",
  "sec-websocket-extensions",
  "sec-websocket-protocol",
];

/** The request for a socket as an actor gets it: who asks, and what the client's handshake says. */
const socketRequest = ({ req }: HttpContext, url: URL, principal: Principal): Request => {
  const headers = new Headers({ upgrade: "websocket", connection: "Upgrade" });
  for (const name of socketHeaders) {
    const value = req.header(name);
    if (value !== undefined) headers.set(name, value);
  }
  headers.set(principalHeader, JSON.stringify(principal));
  return new Request(url, { headers });
};

/** Asks an actor for a socket. It answers 101 with one, or its refusal as a value. */
export const socketFrom = async (
  actor: { fetch(request: Request): Promise<Response> },
  context: HttpContext,
  url: URL,
  principal: Principal,
): Promise<Outcome<Response>> => {
  const answer = await actor.fetch(socketRequest(context, url, principal));
  if (answer.webSocket) return ok(answer);
  const { code, detail, issues } = Problem.parse(await answer.json());
  return refuse(code, detail, issues);
};

export const requireUpgrade = ({ req }: HttpContext, instead: string): void => {
  if (req.header("upgrade")?.toLowerCase() === "websocket") return;
  throw new ColloquyError("upgrade_required", `Connect with a WebSocket client, or ${instead}.`);
};

/** Asks the space for a socket as the caller, from `cursor` on. */
const openSocket = async (context: HttpContext, spaceId: string, cursor: string | undefined): Promise<Response> => {
  requireCursor(cursor);
  await requireParticipant(context);
  const url = new URL(`https://space/v1/spaces/${spaceId}/stream`);
  if (cursor !== undefined) url.searchParams.set("cursor", cursor);
  const space = context.env.SPACE.getByName(spaceId);
  return inSpace(context, (principal) => socketFrom(space, context, url, principal));
};

/** The frames of a socket as Server-Sent Events. `isBehind`: the welcome's cursor is newer than what follows it. */
export const asEvents = (context: HttpContext, answer: Response, isBehind = false): Response => {
  const socket = answer.webSocket;
  if (!socket) return answer;
  const headers = { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-store, no-transform" };
  if (context.req.method !== "HEAD") return new Response(bridge(socket, context.req.raw.signal, isBehind), { headers });
  socket.accept();
  socket.close(1000, "only the headers were asked for");
  return new Response(null, { headers });
};

/** A malformed cursor is refused before an actor is asked. */
export const requireCursor = (cursor: string | undefined): void => {
  if (cursor === undefined || /^\d{1,15}$/.test(cursor)) return;
  throw new ColloquyError("invalid_cursor", "A cursor is the whole number that a durable event carried.");
};

const query = streamQuery.extend({
  cursor: z.string().optional().meta({
    description: "The cursor of the last durable event; left out: from now on; 0: from the start",
    example: "42",
  }),
});

export const stream = new Resource("Stream");

stream.route("GET /v1/spaces/{spaceId}/stream", {
  summary: "A space's events over WebSocket",
  description:
    "Every frame is one JSON object with `type`; durable ones carry `cursor` and are replayed after the one in the query.",
  access: "stream",
  query,
  responses: { 101: { description: "The socket" } },
  problems: ["not_found", "invalid_cursor", "upgrade_required", "acting_entity_required", "limit_reached"],
  handle: async ({ context, params, query: { cursor } }) => {
    requireUpgrade(context, "use /events for Server-Sent Events");
    return openSocket(context, params.spaceId, cursor);
  },
});

stream.route("GET /v1/spaces/{spaceId}/events", {
  summary: "The same events as Server-Sent Events",
  description:
    "`event:` is the frame's type, `id:` the cursor of durable ones, `data:` the frame. When the space closes the stream, the last event is `closed` with `{code, reason}`.",
  access: "stream",
  query,
  headers: z.object({ "last-event-id": z.string().optional() }),
  responses: { 200: { description: "The events", content: { "text/event-stream": { schema: z.string() } } } },
  problems: ["not_found", "invalid_cursor", "acting_entity_required", "limit_reached"],
  handle: async ({ context, params, query: { cursor }, headers: asked }) => {
    return asEvents(context, await openSocket(context, params.spaceId, asked["last-event-id"] || cursor));
  },
});
