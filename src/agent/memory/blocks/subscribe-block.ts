import { ColloquyError } from "../../../shared/errors.ts";
import { callerOf } from "../../../sockets/authenticated-sockets.ts";
import type { BlockServices } from "./block-services.ts";
import { blockView, detailOf } from "./block-view.ts";
import { sharedView } from "./sharing.ts";

/** Opens a socket on a block of this agent: the welcome first, then each change as it is stored. */
export const subscribeBlock = async (services: BlockServices, request: Request): Promise<Response> => {
  const principal = callerOf(request);
  if (principal.workspaceId !== services.identity.get().workspaceId) {
    throw new ColloquyError("not_found", "there is no such agent");
  }
  const { searchParams } = new URL(request.url);
  const label = searchParams.get("label") ?? "";
  const spaceId = searchParams.get("space") ?? undefined;
  // Nothing is awaited after this, so that no change falls between the welcome and what follows it.
  const { row, value, rendered } = await services.blocks.read(label);
  const view = spaceId === undefined ? blockView(row) : sharedView(services, label, spaceId);
  const [client, server] = Object.values(new WebSocketPair());
  if (!client || !server) throw new Error("subscribeBlock: a WebSocketPair is two sockets");
  services.subscriptions.accept(server, label, principal, spaceId);
  const block = detailOf(view, { value, rendered, version: row.version });
  server.send(JSON.stringify({ type: "welcome", cursor: row.version, block }));
  return new Response(null, { status: 101, webSocket: client });
};
