import * as z from "zod";
import type { Env } from "../../../env/env.ts";
import type { BlockFrame } from "../../../protocol/block.ts";
import { closeCodes } from "../../../protocol/events.ts";
import { spaceId } from "../../../protocol/ids.ts";
import { hasWorkspaceRights, mayRead, type Principal } from "../../../protocol/principal.ts";
import type { SpaceSnapshot, WorkspaceRpc } from "../../../protocol/rpc.ts";
import type { Clock } from "../../../shared/clock.ts";
import { ColloquyError, errorKind } from "../../../shared/errors.ts";
import {
  callerOf,
  createAuthenticatedSockets,
  credentialName,
  credentialsUntil,
  type Session,
} from "../../../sockets/authenticated-sockets.ts";
import type { Timers } from "../../../timers/timers.ts";
import {
  maxSubscriberFrames,
  maxSubscribers,
  maxSubscribersPerPerson,
  subscriberAnswerMs,
  subscriberProofMs,
} from "../../bounds.ts";
import type { Identity } from "../../identity.ts";
import type { Blocks, StoredChange } from "./blocks.ts";
import { blockView, type Shares } from "./shares.ts";

/**
 * Sockets that follow blocks: each is told of its block as the block is seen from where the socket subscribed.
 *
 * Invariants
 * 1. A subscriber has the workspace's rights, or is in the space that it subscribed from; of a confidential one it is a
 *    reader (C19). That is proven every `subscriberProofMs`. Once it does not hold, or was not proven for as long, the
 *    socket closes (S5).
 * 2. A socket from a space that became confidential since is closed, to be opened with the rights of now (C18).
 * 3. A frame is made once for each space, however many sockets get it.
 */
export const subscriptionsTimer = "subscriptions";

const Data = z.object({
  label: z.string(),
  /** The space that the block is seen from. Left out by subscribers with the workspace's rights. */
  spaceId: spaceId.exactOptional(),
  /** The space was confidential when it subscribed. */
  confidential: z.boolean().exactOptional(),
  /** Frames that it sent, of which this stream takes none. */
  sent: z.number(),
});
type Subscriber = Session<z.infer<typeof Data>>;

const notSharedHere = "it is not shared with this space any more";

export type BlockSubscriptions = ReturnType<typeof createBlockSubscriptions>;

export const createBlockSubscriptions = (
  ctx: DurableObjectState,
  env: Pick<Env, "WORKSPACE" | "SPACE">,
  timers: Timers,
  clock: Clock,
  shares: Pick<Shares, "viewFor" | "isConfidential">,
) => {
  const mayFollow = async (workspace: WorkspaceRpc, { principal, data }: Subscriber): Promise<boolean> => {
    if (principal.kind === "key") return true;
    const standing = await workspace.standing(principal.entityId);
    if (!standing.ok) return false;
    const admin = standing.value.role === "admin";
    if (data.spaceId === undefined) return admin;
    const space = await env.SPACE.getByName(data.spaceId).describe({ ...principal, admin });
    return space.ok && mayRead(space.value, principal);
  };

  const prove = async (subscriber: Subscriber): Promise<number> => {
    const workspace = env.WORKSPACE.getByName(subscriber.principal.workspaceId);
    const until = await credentialsUntil(workspace, subscriber.principal, ctx.id.toString());
    return until > 0 && (await mayFollow(workspace, subscriber)) ? until : 0;
  };

  const sockets = createAuthenticatedSockets({
    ctx,
    timers,
    clock,
    timer: subscriptionsTimer,
    data: Data,
    proofMs: 2 * subscriberProofMs,
    proofLeadMs: subscriberProofMs,
    proofAnswerMs: subscriberAnswerMs,
    proofName: ({ principal, data }) => `${credentialName(principal)} ${data.spaceId ?? ""}`,
    prove,
  });

  /** One person does not take all the places. A secret key is nobody's, and may. */
  const requireRoomOf = (principal: Principal): void => {
    if (principal.kind === "key") return;
    const own = [...sockets.all()].filter(({ principal: { kind, entityId } }) => {
      return kind === "entity" && entityId === principal.entityId;
    });
    if (own.length < maxSubscribersPerPerson) return;
    const message = `${maxSubscribersPerPerson} of your sockets follow blocks here (maxSubscribersPerPerson)`;
    throw new ColloquyError("unavailable", `${message}: close some first`);
  };

  return {
    /**
     * Opens a socket on a block of this agent: the welcome first, then each change as it is stored. Throws `not_found`,
     * `unavailable` where there are too many, and `token_expired`.
     */
    async open(request: Request, identity: Pick<Identity, "get">, blocks: Pick<Blocks, "detail">): Promise<Response> {
      const principal = callerOf(request);
      if (principal.workspaceId !== identity.get().workspaceId) {
        throw new ColloquyError("not_found", "there is no such agent");
      }
      const { searchParams } = new URL(request.url);
      const label = searchParams.get("label") ?? "";
      const from = searchParams.get("space") ?? undefined;
      const block = await blocks.detail(label, undefined, from);
      // Nothing is awaited after this, so that no change falls between the welcome and what follows it.
      if (sockets.size >= maxSubscribers) {
        const message = `${maxSubscribers} sockets follow blocks here, which is the most (maxSubscribers)`;
        throw new ColloquyError("unavailable", message);
      }
      requireRoomOf(principal);
      const [client, server] = Object.values(new WebSocketPair());
      if (!client || !server) throw new Error("a WebSocketPair is two sockets");
      ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair("ping", "pong"));
      const place = from === undefined ? {} : { spaceId: from, confidential: shares.isConfidential(from) };
      sockets.accept(server, principal, { label, sent: 0, ...place });
      server.send(JSON.stringify({ type: "welcome", cursor: block.version, block }));
      return new Response(null, { status: 101, webSocket: client });
    },

    /** A change is stored: the block's subscribers are told. One whose space does not share the block any more is closed. */
    changed({ row, by, value }: StoredChange): void {
      const { label } = row;
      const frameFor = (from: string | undefined): BlockFrame | undefined => {
        if (value === undefined) return { type: "block.deleted", label, by };
        const view = from === undefined ? blockView(row) : shares.viewFor(row, from);
        return view && { type: "block.changed", cursor: row.version, block: { ...view, value }, by };
      };
      const texts = new Map<string | undefined, string | undefined>();
      for (const subscriber of sockets.all()) {
        const { label: own, spaceId: from } = subscriber.data;
        if (own !== label) continue;
        if (!texts.has(from)) texts.set(from, JSON.stringify(frameFor(from)));
        const text = texts.get(from);
        if (text === undefined) sockets.close(subscriber, closeCodes.removed, notSharedHere);
        else sockets.send(subscriber, text);
      }
      const isFollowing = ({ data }: Subscriber): boolean => data.label === label;
      if (value === undefined) sockets.closeWhere(isFollowing, closeCodes.spaceDeleted, "it was deleted");
    },

    /**
     * From now on only members of the space may subscribe from it. For a confidential one that is only who reads it
     * (C19), with the rights that its people have since.
     */
    keepMembers(from: string, space: Pick<SpaceSnapshot, "confidential" | "members">): void {
      const isKept = (principal: Principal): boolean =>
        (hasWorkspaceRights(principal) || space.members.some(({ id }) => id === principal.entityId)) &&
        mayRead(space, principal);
      const hasLeft = ({ principal, data }: Subscriber): boolean => data.spaceId === from && !isKept(principal);
      sockets.closeWhere(hasLeft, closeCodes.removed, "not in the space any more");
      const isOlder = ({ data }: Subscriber): boolean => data.spaceId === from && data.confidential !== true;
      const why = "the space became confidential: open it again";
      if (space.confidential) sockets.closeWhere(isOlder, closeCodes.rightsChanged, why);
    },

    /** The block is not shared with the space any more. */
    closeFrom(from: string, label: string): void {
      const isFrom = ({ data }: Subscriber): boolean => data.spaceId === from && data.label === label;
      sockets.closeWhere(isFrom, closeCodes.removed, notSharedHere);
    },

    /** This stream takes no frames. A client that goes on sending them is closed. */
    received(socket: WebSocket): void {
      const subscriber = sockets.of(socket);
      if (!subscriber || sockets.closeIfExpired(subscriber)) return;
      subscriber.data.sent += 1;
      if (subscriber.data.sent > maxSubscriberFrames) {
        const reason = `more than ${maxSubscriberFrames} frames (maxSubscriberFrames)`;
        sockets.close(subscriber, closeCodes.badFrames, reason);
        return;
      }
      sockets.keep(subscriber);
      const { title, status } = errorKind("bad_frame");
      const detail = "This stream only tells: edit by POST …/operations";
      sockets.send(subscriber, JSON.stringify({ type: "error", title, status, code: "bad_frame", detail }));
    },

    closeAll: (code: number = closeCodes.spaceDeleted, why = "it was deleted"): void =>
      sockets.closeWhere(() => true, code, why),
    /** The socket's other end has closed it, or was lost. */
    forget: sockets.forget,
    /** The timer `subscriptions` went off. */
    onTimer: sockets.onTimer,
    proveAgain: sockets.proveAgain,
  };
};
