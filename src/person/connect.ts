import type { LineWelcome } from "../protocol/line.ts";
import { ColloquyError } from "../shared/errors.ts";
import { callerOf } from "../sockets/authenticated-sockets.ts";
import { maxLines } from "./bounds.ts";
import { look } from "./looking.ts";
import { type PersonServices, readsConfidential } from "./services.ts";

/** A line's `?cursor=`: up to where its notifications are known. Left out: those from now on. */
const cursorOf = (url: string): number | undefined => {
  const cursor = new URL(url).searchParams.get("cursor");
  if (cursor === null) return undefined;
  if (!/^\d{1,15}$/.test(cursor)) throw new ColloquyError("invalid_cursor", "cursor must be a whole number from 0");
  return Number(cursor);
};

/**
 * Opens a line: the welcome first, then the unread notifications after its cursor, then what happens; all in one turn, so
 * that nothing falls between (D3).
 */
export const connect = async (services: PersonServices, request: Request): Promise<Response> => {
  const { sockets, spaces, notifications, people } = services;
  const principal = callerOf(request);
  const { workspaceId, entityId } = principal;
  if (entityId === undefined) {
    throw new ColloquyError("acting_entity_required", "Name the person whose line it is with X-Entity-Id");
  }
  const asked = cursorOf(request.url);
  const entity = await look(services, { workspaceId, entityId });
  if (sockets.size >= maxLines) {
    throw new ColloquyError(
      "unavailable",
      `You have ${maxLines} lines, which is the most (maxLines): close some first`,
    );
  }
  const [client, server] = Object.values(new WebSocketPair());
  if (!client || !server) throw new Error("connect: a WebSocketPair is two sockets");
  people.keep({ workspaceId, entityId });
  const session = sockets.accept(server, principal, { entityId });
  const known = spaces.all().filter(({ summary }) => summary.confidential !== true || readsConfidential(principal));
  const welcome: LineWelcome = {
    type: "welcome",
    you: { id: entityId, type: entity.type, name: entity.name },
    spaces: known.map(({ summary }) => summary),
    needsYou: known.flatMap(({ needsYou }) => needsYou),
    cursor: notifications.cursor(),
  };
  sockets.send(session, JSON.stringify(welcome));
  const shown = new Set(known.map(({ summary }) => summary.spaceId));
  for (const event of asked === undefined ? [] : notifications.after(asked)) {
    if (shown.has(event.spaceId)) sockets.send(session, JSON.stringify(event));
  }
  return new Response(null, { status: 101, webSocket: client });
};
