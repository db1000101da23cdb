import { z } from "zod";
import { closeCodes, type DurableEvent, type LiveFrame } from "../../protocol/events.ts";
import { type KeyPrincipal, Principal } from "../../protocol/principal.ts";
import type { Clock } from "../../shared/clock.ts";
import { ColloquyError } from "../../shared/errors.ts";
import type { Timers } from "../../timers/timers.ts";
import { type ActingPrincipal, isActing } from "../acting-principal.ts";
import {
  frameWindowMs,
  keyProofLeadMs,
  keyProofMs,
  maxBadFrames,
  maxFrames,
  maxSockets,
  maxSocketsPerMember,
  typingIntervalMs,
} from "../bounds.ts";
import type { KeyProof, KeyProofs } from "./key-proofs.ts";
import { MemberRates } from "./member-rates.ts";
import { RateWindow } from "./rate.ts";

/**
 * The sockets of a space, which outlive the object's memory: what must survive a sleep is in their attachments.
 *
 * Invariants
 * 1. A frame is put into words once, whoever many get it.
 * 2. A socket whose credentials have run out is not listened to, and is closed by a timer that survives a sleep. Those
 *    of a key run out unless its workspace says again and again that it lives (`key-proofs.ts`).
 * 3. A session is a member's: from the turn in which somebody is removed, what their sockets send is not heard (S5).
 */
export const expiryTimer = "sockets";

const Attachment = z.object({ principal: Principal, expiresAt: z.number() });

export type Session = {
  socket: WebSocket;
  principal: ActingPrincipal;
  entityId: string;
  expiresAt: number;
  frames: RateWindow;
  badFrames: RateWindow;
  /** Shared with the member's other sockets. */
  memberFrames: RateWindow;
};

type Surroundings = {
  ctx: Pick<DurableObjectState, "acceptWebSocket" | "getWebSockets">;
  timers: Pick<Timers, "set" | "setNoLater">;
  clock: Clock;
  proofs: Pick<KeyProofs, "ask">;
};

export class Sockets {
  readonly #around: Surroundings;
  readonly #sessions = new Map<WebSocket, Session>();
  /** When each member's typing was last told. */
  readonly #typing = new Map<string, number>();
  readonly #rates = new MemberRates();

  constructor(surroundings: Surroundings) {
    this.#around = surroundings;
    for (const socket of surroundings.ctx.getWebSockets()) {
      const attachment = Attachment.safeParse(socket.deserializeAttachment());
      if (!attachment.success || socket.readyState !== WebSocket.OPEN) continue;
      const { principal, expiresAt } = attachment.data;
      if (isActing(principal)) this.#remember(socket, principal, expiresAt);
    }
  }

  /** Takes the socket in. `unavailable` where there are too many. */
  accept(socket: WebSocket, principal: ActingPrincipal): Session {
    const { ctx, timers, clock } = this.#around;
    if (this.#sessions.size >= maxSockets) {
      throw new ColloquyError(
        "unavailable",
        `This space has ${maxSockets} sockets, which is the most (maxSockets): try later`,
      );
    }
    let own = 0;
    for (const session of this.#sessions.values()) if (session.entityId === principal.entityId) own += 1;
    if (own >= maxSocketsPerMember) {
      throw new ColloquyError(
        "unavailable",
        `You have ${own} sockets here, which is the most (maxSocketsPerMember): close some first`,
      );
    }
    const expiresAt =
      principal.kind === "entity" ? principal.expiresAt : (principal.provenAt ?? clock.now()) + keyProofMs;
    ctx.acceptWebSocket(socket);
    socket.serializeAttachment({ principal, expiresAt });
    const session = this.#remember(socket, principal, expiresAt);
    timers.setNoLater(expiryTimer, this.#dueAt(session));
    return session;
  }

  /** Undefined for a socket that was closed from here. */
  session(socket: WebSocket): Session | undefined {
    return this.#sessions.get(socket);
  }

  /** Sends to every socket, save those of one member. */
  broadcast(text: string, exceptEntityId?: string): void {
    for (const session of this.#sessions.values()) {
      if (session.entityId !== exceptEntityId) this.send(session, text);
    }
  }

  tell(frame: LiveFrame | DurableEvent): void {
    if (this.#sessions.size > 0) this.broadcast(JSON.stringify(frame));
  }

  send({ socket }: Session, text: string): void {
    try {
      socket.send(text);
    } catch {
      // The peer is gone, and its close has not come to us yet.
      this.forget(socket);
    }
  }

  /** Tells the others that a member types, unless they have just been told. */
  typing(entityId: string): void {
    const now = this.#around.clock.now();
    if (Math.abs(now - (this.#typing.get(entityId) ?? Number.NEGATIVE_INFINITY)) < typingIntervalMs) return;
    this.#typing.set(entityId, now);
    this.broadcast(JSON.stringify({ type: "member.typing", entityId }), entityId);
  }

  closeMember(entityId: string, code: number, reason: string): void {
    this.#typing.delete(entityId);
    for (const session of this.#sessions.values()) if (session.entityId === entityId) this.close(session, code, reason);
  }

  closeAll(code: number, reason: string): void {
    for (const session of this.#sessions.values()) this.close(session, code, reason);
  }

  close({ socket }: Session, code: number, reason: string): void {
    this.forget(socket);
    socket.close(code, reason);
  }

  /** Closes the session if its credentials have run out; says whether it has. */
  closedByExpiry(session: Session): boolean {
    if (session.expiresAt > this.#around.clock.now()) return false;
    this.close(session, closeCodes.tokenExpired, "the token has expired: refresh it and reconnect");
    return true;
  }

  forget(socket: WebSocket): void {
    this.#sessions.delete(socket);
  }

  /** The timer `sockets` went off. */
  onTimer(): void {
    const { timers, clock, proofs } = this.#around;
    const unproven = new Map<string, KeyPrincipal>();
    let next = Number.POSITIVE_INFINITY;
    for (const session of this.#sessions.values()) {
      if (this.closedByExpiry(session)) continue;
      const isDue = this.#dueAt(session) <= clock.now();
      if (isDue && session.principal.kind === "key") unproven.set(session.principal.keyId, session.principal);
      next = Math.min(next, isDue ? session.expiresAt : this.#dueAt(session));
    }
    if (next < Number.POSITIVE_INFINITY) timers.set(expiryTimer, next);
    for (const key of unproven.values()) proofs.ask(key, (proof) => this.#proven(key.keyId, proof));
  }

  /** The workspace's word about a key. */
  #proven(keyId: string, { lives, askedAt }: KeyProof): void {
    for (const session of this.#sessions.values()) {
      const { socket, principal } = session;
      if (principal.kind !== "key" || principal.keyId !== keyId) continue;
      if (!lives) {
        this.close(session, closeCodes.tokenExpired, "the secret key was revoked");
        continue;
      }
      session.expiresAt = Math.max(session.expiresAt, askedAt + keyProofMs);
      socket.serializeAttachment({ principal, expiresAt: session.expiresAt });
      this.#around.timers.setNoLater(expiryTimer, this.#dueAt(session));
    }
  }

  /** When something is to be done about a session: a key is asked for before its proof runs out. */
  #dueAt({ principal, expiresAt }: Session): number {
    return principal.kind === "key" ? expiresAt - keyProofLeadMs : expiresAt;
  }

  #remember(socket: WebSocket, principal: ActingPrincipal, expiresAt: number): Session {
    const frames = new RateWindow(maxFrames, frameWindowMs);
    const badFrames = new RateWindow(maxBadFrames, frameWindowMs);
    const { entityId } = principal;
    const memberFrames = this.#rates.of(entityId, this.#around.clock.now());
    const session = { socket, principal, entityId, expiresAt, frames, badFrames, memberFrames };
    this.#sessions.set(socket, session);
    return session;
  }
}
