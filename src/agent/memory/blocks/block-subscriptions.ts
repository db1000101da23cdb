import { z } from "zod";
import type { Env } from "../../../env/env.ts";
import type { Block, BlockFrame } from "../../../protocol/block.ts";
import { closeCodes } from "../../../protocol/events.ts";
import { spaceId } from "../../../protocol/ids.ts";
import { hasWorkspaceRights, type Principal } from "../../../protocol/principal.ts";
import type { Clock } from "../../../shared/clock.ts";
import { ColloquyError, errorKind } from "../../../shared/errors.ts";
import {
  type AuthenticatedSockets,
  callerOf,
  createAuthenticatedSockets,
  type Session,
} from "../../../sockets/authenticated-sockets.ts";
import type { Timers } from "../../../timers/timers.ts";
import { maxSubscriberFrames, maxSubscribers, subscriberAnswerMs, subscriberProofMs } from "../../bounds.ts";
import type { Identity } from "../../identity.ts";
import { type BlockRow, blockView } from "./block-view.ts";
import type { Blocks, StoredChange } from "./blocks.ts";

/**
 * Sockets that follow blocks: each is told of its block as the block is seen from where the socket subscribed.
 *
 * Invariants
 * 1. A subscriber has the workspace's rights, or is in the space that it subscribed from. That is proven every
 *    `subscriberProofMs`. Once it does not hold, or was not proven twice, the socket closes (S5).
 * 2. A frame is made once for each space, however many sockets get it.
 */
export const subscriptionsTimer = "subscriptions";

const Data = z.object({
  label: z.string(),
  /** The space that the block is seen from. Left out by subscribers with the workspace's rights. */
  spaceId: spaceId.exactOptional(),
  /** Frames that it sent, of which this stream takes none. */
  sent: z.number(),
});
type Subscriber = Session<z.infer<typeof Data>>;

type Around = {
  ctx: Pick<DurableObjectState, "acceptWebSocket" | "getWebSockets" | "setWebSocketAutoResponse" | "waitUntil">;
  env: Pick<Env, "WORKSPACE" | "SPACE">;
  timers: Pick<Timers, "set" | "setNoLater">;
  clock: Clock;
  shares: { viewFor(row: BlockRow, granteeId: string): Block | undefined };
};

const notSharedHere = "it is not shared with this space any more";

export class BlockSubscriptions {
  readonly #around: Around;
  readonly #sockets: AuthenticatedSockets<Subscriber["data"]>;

  constructor(around: Around) {
    this.#around = around;
    const { ctx, timers, clock } = around;
    this.#sockets = createAuthenticatedSockets({
      ctx,
      timers,
      clock,
      timer: subscriptionsTimer,
      data: Data,
      proofMs: 2 * subscriberProofMs,
      proofLeadMs: subscriberProofMs,
      proofAnswerMs: subscriberAnswerMs,
      needsProof: () => true,
      proofName: ({ principal, data }) =>
        `${principal.kind === "key" ? principal.keyId : principal.entityId} ${data.spaceId ?? ""}`,
      prove: (subscriber) => this.#maySubscribe(subscriber),
    });
  }

  /** Takes a socket in. Throws `unavailable` where there are too many, `token_expired`. */
  accept(socket: WebSocket, label: string, principal: Principal, from?: string): void {
    if (this.#sockets.size >= maxSubscribers) {
      const message = `${maxSubscribers} sockets follow blocks here, which is the most (maxSubscribers)`;
      throw new ColloquyError("unavailable", message);
    }
    this.#around.ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair("ping", "pong"));
    this.#sockets.accept(socket, principal, { label, sent: 0, ...(from === undefined ? {} : { spaceId: from }) });
  }

  /** A change is stored: the block's subscribers are told. One whose space does not share the block any more is closed. */
  changed({ what, row, by, value }: StoredChange): void {
    const { label } = row;
    if (this.#sockets.size === 0) return;
    if (what === "deleted") {
      this.#tell(label, () => ({ type: "block.deleted", label, by }));
      this.#sockets.closeWhere(({ data }) => data.label === label, closeCodes.spaceDeleted, "it was deleted");
    } else if (value !== undefined) {
      this.#tell(label, (from) => {
        const view = from === undefined ? blockView(row) : this.#around.shares.viewFor(row, from);
        return view && { type: "block.changed", cursor: row.version, block: { ...view, value }, by };
      });
    }
  }

  /** From now on only members of the space may subscribe from it. */
  keepMembers(from: string, members: readonly { id: string }[]): void {
    if (this.#sockets.size === 0) return;
    const ids = new Set(members.map(({ id }) => id));
    const hasLeft = ({ principal, data }: Subscriber): boolean =>
      data.spaceId === from && !hasWorkspaceRights(principal) && !ids.has(principal.entityId ?? "");
    this.#sockets.closeWhere(hasLeft, closeCodes.removed, "not in the space any more");
  }

  /** The block is not shared with the space any more. */
  closeFrom(from: string, label: string): void {
    const isFrom = ({ data }: Subscriber): boolean => data.spaceId === from && data.label === label;
    this.#sockets.closeWhere(isFrom, closeCodes.removed, notSharedHere);
  }

  /** This stream takes no frames. A client that goes on sending them is closed. */
  received(socket: WebSocket): void {
    const subscriber = this.#sockets.of(socket);
    if (!subscriber || this.#sockets.closeIfExpired(subscriber)) return;
    subscriber.data.sent += 1;
    if (subscriber.data.sent > maxSubscriberFrames) {
      const reason = `more than ${maxSubscriberFrames} frames (maxSubscriberFrames)`;
      this.#sockets.close(subscriber, closeCodes.badFrames, reason);
      return;
    }
    this.#sockets.keep(subscriber);
    const { title, status } = errorKind("bad_frame");
    const detail = "This stream only tells: edit by POST …/operations";
    this.#sockets.send(subscriber, JSON.stringify({ type: "error", title, status, code: "bad_frame", detail }));
  }

  /** The socket's other end has closed it, or was lost. */
  forget(socket: WebSocket): void {
    this.#sockets.forget(socket);
  }

  closeAll(): void {
    this.#sockets.closeWhere(() => true, closeCodes.spaceDeleted, "it was deleted");
  }

  /** The timer `subscriptions` went off. */
  onTimer(): void {
    this.#sockets.onTimer();
  }

  #tell(label: string, frameFor: (from: string | undefined) => BlockFrame | undefined): void {
    const texts = new Map<string | undefined, string | undefined>();
    for (const subscriber of this.#sockets.all()) {
      const { label: own, spaceId: from } = subscriber.data;
      if (own !== label) continue;
      if (!texts.has(from)) {
        const frame = frameFor(from);
        texts.set(from, frame && JSON.stringify(frame));
      }
      const text = texts.get(from);
      if (text === undefined) this.#sockets.close(subscriber, closeCodes.removed, notSharedHere);
      else this.#sockets.send(subscriber, text);
    }
  }

  async #maySubscribe({ principal, data }: Subscriber): Promise<boolean> {
    const { env } = this.#around;
    const workspace = env.WORKSPACE.getByName(principal.workspaceId);
    if (principal.kind === "key") {
      const lives = await workspace.keyLives(principal.keyId);
      return lives.ok && lives.value;
    }
    const standing = await workspace.standing(principal.entityId);
    if (!standing.ok || standing.value.role === "admin") return standing.ok;
    if (data.spaceId === undefined) return false;
    return (await env.SPACE.getByName(data.spaceId).describe({ ...principal, admin: false })).ok;
  }
}

type Subscribing = {
  identity: Pick<Identity, "get">;
  blocks: Pick<Blocks, "detail">;
  subscriptions: BlockSubscriptions;
};

/** Opens a socket on a block of this agent: the welcome first, then each change as it is stored. */
export const subscribeBlock = async (
  { identity, blocks, subscriptions }: Subscribing,
  request: Request,
): Promise<Response> => {
  const principal = callerOf(request);
  if (principal.workspaceId !== identity.get().workspaceId) {
    throw new ColloquyError("not_found", "there is no such agent");
  }
  const { searchParams } = new URL(request.url);
  const label = searchParams.get("label") ?? "";
  const from = searchParams.get("space") ?? undefined;
  const block = await blocks.detail(label, undefined, from);
  // Nothing is awaited after this, so that no change falls between the welcome and what follows it.
  const [client, server] = Object.values(new WebSocketPair());
  if (!client || !server) throw new Error("subscribeBlock: a WebSocketPair is two sockets");
  subscriptions.accept(server, label, principal, from);
  server.send(JSON.stringify({ type: "welcome", cursor: block.version, block }));
  return new Response(null, { status: 101, webSocket: client });
};
