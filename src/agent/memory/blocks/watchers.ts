import { z } from "zod";
import type { BlockFrame } from "../../../protocol/block-events.ts";
import { closeCodes } from "../../../protocol/events.ts";
import { spaceId } from "../../../protocol/ids.ts";
import { hasWorkspaceRights, Principal } from "../../../protocol/principal.ts";
import type { Clock } from "../../../shared/clock.ts";
import type { Env } from "../../../shared/env.ts";
import { ColloquyError, errorKind } from "../../../shared/errors.ts";
import { log } from "../../../shared/log.ts";
import { withTimeout } from "../../../shared/timeouts.ts";
import type { Timers } from "../../../timers/timers.ts";
import { maxWatcherFrames, maxWatchers, watcherAnswerMs, watcherProofMs } from "../../bounds.ts";

/**
 * Sockets of who watches blocks. They outlive the object's memory: what must survive a sleep is in their attachments.
 *
 * Invariants
 * 1. Who watches has the workspace's rights, or is in the space that it watches from; proven again and again while it
 *    does. Once it has not, or that cannot be told in time, its socket is closed (S5).
 * 2. A frame is put into words once for each space, whoever many get it.
 */
export const watchersTimer = "watchers";

const Attachment = z.object({
  label: z.string(),
  principal: Principal,
  /** The space that it is seen from; left out by who has the workspace's rights. */
  spaceId: spaceId.exactOptional(),
  provenAt: z.number(),
  /** Frames that it sent, of which this stream takes none. */
  sent: z.number(),
});
type Attachment = z.infer<typeof Attachment>;

type Around = {
  ctx: Pick<DurableObjectState, "acceptWebSocket" | "getWebSockets" | "setWebSocketAutoResponse">;
  env: Pick<Env, "WORKSPACE" | "SPACE">;
  timers: Pick<Timers, "set" | "setNoLater">;
  clock: Clock;
};

const notSharedHere = "it is not shared with this space any more";

const tagOf = (label: string): string => `block:${label}`;

export class Watchers {
  readonly #around: Around;

  constructor(around: Around) {
    this.#around = around;
  }

  /** Whether anybody watches the block. */
  has(label: string): boolean {
    return this.#around.ctx.getWebSockets(tagOf(label)).length > 0;
  }

  /** Takes a socket in. Throws `unavailable` where there are too many, `token_expired`. */
  accept(socket: WebSocket, label: string, principal: Principal, from?: string): void {
    const { ctx, timers, clock } = this.#around;
    const now = clock.now();
    if (principal.kind === "entity" && principal.expiresAt <= now) {
      throw new ColloquyError("token_expired", "The token has expired: get a new one");
    }
    if (ctx.getWebSockets().length >= maxWatchers) {
      throw new ColloquyError("unavailable", `${maxWatchers} sockets watch here, which is the most (maxWatchers)`);
    }
    ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair("ping", "pong"));
    ctx.acceptWebSocket(socket, [tagOf(label)]);
    const seen = from === undefined ? {} : { spaceId: from };
    socket.serializeAttachment({ label, principal, ...seen, provenAt: now, sent: 0 } satisfies Attachment);
    const expiresAt = principal.kind === "entity" ? principal.expiresAt : Number.POSITIVE_INFINITY;
    timers.setNoLater(watchersTimer, Math.min(now + watcherProofMs, expiresAt));
  }

  /**
   * `frameFor`: what is told those who watch from a space, or by the workspace's rights. Undefined: the block is not
   * shared there any more, and who watches from there is closed.
   */
  tell(label: string, frameFor: (from: string | undefined) => BlockFrame | undefined): void {
    const texts = new Map<string | undefined, string | undefined>();
    for (const socket of this.#around.ctx.getWebSockets(tagOf(label))) {
      const from = this.#of(socket)?.spaceId;
      if (!texts.has(from)) {
        const frame = frameFor(from);
        texts.set(from, frame && JSON.stringify(frame));
      }
      const text = texts.get(from);
      if (text === undefined) socket.close(closeCodes.removed, notSharedHere);
      else this.#send(socket, text);
    }
  }

  /** Of those who watch from a space, only its members do so from now on. */
  keep(from: string, members: readonly { id: string }[]): void {
    const sockets = this.#around.ctx.getWebSockets();
    if (sockets.length === 0) return;
    const ids = new Set(members.map(({ id }) => id));
    for (const socket of sockets) {
      const attachment = this.#of(socket);
      if (attachment?.spaceId !== from || hasWorkspaceRights(attachment.principal)) continue;
      if (!ids.has(attachment.principal.entityId ?? "")) socket.close(closeCodes.removed, "not in the space any more");
    }
  }

  /** The block is not shared with the space any more. */
  closeFrom(from: string, label: string): void {
    for (const socket of this.#around.ctx.getWebSockets(tagOf(label))) {
      if (this.#of(socket)?.spaceId === from) socket.close(closeCodes.removed, notSharedHere);
    }
  }

  /** Nothing is asked over this stream; who goes on asking is closed. */
  received(socket: WebSocket): void {
    const attachment = this.#of(socket);
    if (!attachment) return;
    const sent = attachment.sent + 1;
    if (sent > maxWatcherFrames) {
      socket.close(closeCodes.badFrames, `more than ${maxWatcherFrames} frames (maxWatcherFrames)`);
      return;
    }
    socket.serializeAttachment({ ...attachment, sent });
    const { title, status } = errorKind("bad_frame");
    const detail = "This stream only tells: edit by POST …/operations";
    this.#send(socket, JSON.stringify({ type: "error", title, status, code: "bad_frame", detail }));
  }

  closeAll(label?: string): void {
    const { ctx } = this.#around;
    for (const socket of label === undefined ? ctx.getWebSockets() : ctx.getWebSockets(tagOf(label))) {
      socket.close(closeCodes.spaceDeleted, "it was deleted");
    }
  }

  /** The timer `watchers` went off: whose rights are gone does not watch any more. */
  async prove(): Promise<void> {
    const { ctx, clock } = this.#around;
    const verdicts = new Map<string, Promise<boolean | undefined>>();
    const prove = async (socket: WebSocket): Promise<void> => {
      const attachment = this.#of(socket);
      if (!attachment) return;
      const { principal, spaceId: from = "" } = attachment;
      if (principal.kind === "entity" && principal.expiresAt <= clock.now()) return this.#expired(socket);
      const name = `${principal.kind === "key" ? principal.keyId : principal.entityId} ${from}`;
      const verdict = verdicts.get(name) ?? this.#mayWatch(attachment);
      verdicts.set(name, verdict);
      const may = await verdict;
      const isLate = clock.now() - attachment.provenAt > 2 * watcherProofMs;
      if (may) socket.serializeAttachment({ ...attachment, provenAt: clock.now() });
      else if (may === false || isLate) this.#expired(socket);
    };
    const proven = Promise.all(ctx.getWebSockets().map(prove));
    // Before anybody has answered: what is cut off here is followed by another proof.
    this.#arm();
    await proven;
  }

  #arm(): void {
    const { ctx, timers, clock } = this.#around;
    const now = clock.now();
    const expiries = ctx.getWebSockets().flatMap((socket) => {
      const principal = this.#of(socket)?.principal;
      return principal?.kind === "entity" && principal.expiresAt > now ? principal.expiresAt : [];
    });
    if (ctx.getWebSockets().length > 0) timers.set(watchersTimer, Math.min(now + watcherProofMs, ...expiries));
  }

  #expired(socket: WebSocket): void {
    socket.close(closeCodes.tokenExpired, "these credentials do not hold any more");
  }

  /** Undefined where that cannot be told in time. */
  async #mayWatch(attachment: Attachment): Promise<boolean | undefined> {
    try {
      return await withTimeout(watcherAnswerMs, this.#askWhetherMay(attachment));
    } catch (error) {
      log.warn("watcher.unproven", { reason: error instanceof Error ? error.message : String(error) });
      return undefined;
    }
  }

  async #askWhetherMay({ principal, spaceId: from }: Attachment): Promise<boolean> {
    const { env } = this.#around;
    const workspace = env.WORKSPACE.getByName(principal.workspaceId);
    if (principal.kind === "key") {
      const lives = await workspace.keyLives(principal.keyId);
      return lives.ok && lives.value;
    }
    const standing = await workspace.standing(principal.entityId);
    if (!standing.ok || standing.value.role === "admin" || from === undefined) {
      return standing.ok && standing.value.role === "admin";
    }
    return (await env.SPACE.getByName(from).describe({ ...principal, admin: false })).ok;
  }

  #of(socket: WebSocket): Attachment | undefined {
    return Attachment.safeParse(socket.deserializeAttachment()).data;
  }

  #send(socket: WebSocket, text: string): void {
    try {
      socket.send(text);
    } catch (error) {
      // The peer is gone, and its close has not come to us yet.
      if (!(error instanceof Error)) throw error;
    }
  }
}
