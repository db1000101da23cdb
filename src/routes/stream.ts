import { createRoute, z } from "@hono/zod-openapi";
import type { Context } from "hono";
import { type Principal, principalHeader } from "../protocol/principal.ts";
import { Problem } from "../protocol/problem.ts";
import { ColloquyError, type Outcome, ok, refuse } from "../shared/errors.ts";
import { access } from "./access.ts";
import { createRoutes, type House } from "./house.ts";
import { inSpace, requireParticipant } from "./in-space.ts";
import { pathId, problems } from "./route-parts.ts";

const socketHeaders = [
  "sec-websocket-key",
  "sec-websocket-version",
  "sec-websocket-extensions",
  "sec-websocket-protocol",
];

/** The request for a socket as an actor is asked it: by whom, and as the client wishes. */
export const socketRequest = (context: Context<House>, url: URL, principal: Principal): Request => {
  const headers = new Headers({ upgrade: "websocket", connection: "Upgrade" });
  for (const name of socketHeaders) {
    const value = context.req.header(name);
    if (value !== undefined) headers.set(name, value);
  }
  headers.set(principalHeader, JSON.stringify(principal));
  return new Request(url, { headers });
};

/** The socket that an actor answered; its refusal as a value. */
export const answeredSocket = async (answer: Response): Promise<Outcome<Response>> => {
  if (answer.webSocket) return ok(answer);
  const { code, detail, issues } = Problem.parse(await answer.json());
  return refuse(code, detail, issues);
};

export const requireUpgrade = (context: Context<House>, instead: string): void => {
  if (context.req.header("upgrade")?.toLowerCase() === "websocket") return;
  throw new ColloquyError("upgrade_required", `Connect with a WebSocket client, or ${instead}.`);
};

export const cursorQuery = z.string().optional().meta({
  description: "The cursor of the last durable event; left out: from now on; 0: from the start",
  example: "42",
});

/** A malformed cursor is refused before anything is opened. */
export const requireCursor = (cursor: string | undefined): string | undefined => {
  if (cursor === undefined || /^\d{1,15}$/.test(cursor)) return cursor;
  throw new ColloquyError("invalid_cursor", "A cursor is the whole number that a durable event carried.");
};

/** Asks the space for a socket as the caller. It answers 101 with one; its refusals are thrown. */
export const openSocket = async (
  context: Context<House>,
  spaceId: string,
  cursor: string | undefined,
): Promise<Response> => {
  await requireParticipant(context);
  const url = new URL(`https://space/v1/spaces/${spaceId}/stream`);
  if (cursor !== undefined) url.searchParams.set("cursor", cursor);
  return inSpace(context, async (principal) =>
    answeredSocket(await context.env.SPACE.getByName(spaceId).fetch(socketRequest(context, url, principal))),
  );
};

export const stream = createRoutes().openapi(
  createRoute({
    method: "get",
    path: "/v1/spaces/{spaceId}/stream",
    tags: ["Stream"],
    summary: "A space's events over WebSocket",
    description:
      "Every frame is one JSON object with `type`; durable ones carry `cursor` and are replayed after the one in the query.",
    ...access("stream"),
    request: {
      params: z.object({ spaceId: pathId("spc", "the space") }),
      query: z.object({ cursor: cursorQuery }),
    },
    responses: {
      101: { description: "The socket" },
      ...problems("not_found", "invalid_cursor", "upgrade_required", "acting_entity_required", "limit_reached"),
    },
  }),
  async (context) => {
    requireUpgrade(context, "use /events for Server-Sent Events");
    const cursor = requireCursor(context.req.valid("query").cursor);
    return openSocket(context, context.req.valid("param").spaceId, cursor);
  },
);
