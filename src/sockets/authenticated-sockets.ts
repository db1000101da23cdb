import { z } from "zod";
import { closeCodes } from "../protocol/events.ts";
import { Principal, principalHeader } from "../protocol/principal.ts";
import type { Clock } from "../shared/clock.ts";
import { ColloquyError } from "../shared/errors.ts";
import { log } from "../shared/log.ts";
import { withTimeout } from "../shared/timeouts.ts";
import type { Timers } from "../timers/timers.ts";

/**
 * An actor's sockets, each with the credentials that it was opened with. They outlive the object's memory.
 *
 * Invariants
 * 1. What must survive a sleep is in the socket's attachment.
 * 2. A socket closes when its token expires. One whose rights must be proven closes when they are denied, and when they
 *    were not proven for `proofMs`. A timer, which survives a sleep, sees to both (S5).
 * 3. A socket that was closed from here has no session from that turn on: what its client still sends is not heard.
 */
export type Session<Data> = {
  socket: WebSocket;
  principal: Principal;
  data: Data;
  /** Until when its rights count as proven; null where only its token counts. */
  provenUntil: number | null;
};

type Surroundings<Data> = {
  ctx: Pick<DurableObjectState, "acceptWebSocket" | "getWebSockets" | "waitUntil">;
  timers: Pick<Timers, "set" | "setNoLater">;
  clock: Clock;
  timer: string;
  /** What the actor keeps of a socket beside its credentials. */
  data: z.ZodType<Data>;
  /** How long a proof counts, how long before its end a new one is asked for, and how long the answer may take. */
  proofMs: number;
  proofLeadMs: number;
  proofAnswerMs: number;
  needsProof(principal: Principal): boolean;
  /** Sessions of one name have the same rights: one question proves them all. */
  proofName(session: Session<Data>): string;
  /** Whether the session has its rights still. Throws where that cannot be told. */
  prove(session: Session<Data>): Promise<boolean>;
};

const never = Number.POSITIVE_INFINITY;

/** The caller of an upgrade to a WebSocket, as the worker says. */
export const callerOf = (request: Request): Principal => {
  if (request.headers.get("upgrade")?.toLowerCase() !== "websocket") {
    throw new ColloquyError("upgrade_required", "Connect with a WebSocket");
  }
  try {
    return Principal.parse(JSON.parse(request.headers.get(principalHeader) ?? ""));
  } catch (cause) {
    throw new ColloquyError("unauthorized", "Send a key or a token with the request", { cause });
  }
};

/** The object's part of a close that the client began. Without it the connection stays for ten seconds more. */
export const closeBack = (socket: WebSocket, code: number): void => {
  // These two say that there was no code, or no close: they cannot be sent.
  if (code === 1005 || code === 1006) socket.close();
  else socket.close(code);
};

export class AuthenticatedSockets<Data> {
  readonly #around: Surroundings<Data>;
  readonly #sessions = new Map<WebSocket, Session<Data>>();

  constructor(surroundings: Surroundings<Data>) {
    this.#around = surroundings;
    const { ctx, data } = surroundings;
    const Attachment = z.object({ principal: Principal, data, provenUntil: z.number().nullable() });
    for (const socket of ctx.getWebSockets()) {
      const attachment = Attachment.safeParse(socket.deserializeAttachment());
      if (!attachment.success || socket.readyState !== WebSocket.OPEN) continue;
      this.#sessions.set(socket, { socket, ...attachment.data });
    }
  }

  get size(): number {
    return this.#sessions.size;
  }

  all(): Iterable<Session<Data>> {
    return this.#sessions.values();
  }

  /** Undefined for a socket that was closed from here. */
  of(socket: WebSocket): Session<Data> | undefined {
    return this.#sessions.get(socket);
  }

  /** Takes the socket in. Throws `token_expired`. */
  accept(socket: WebSocket, principal: Principal, data: Data): Session<Data> {
    const { ctx, timers, clock, timer, proofMs, needsProof } = this.#around;
    const now = clock.now();
    if (principal.kind === "entity" && principal.expiresAt <= now) {
      throw new ColloquyError("token_expired", "The token has expired: get a new one");
    }
    const provenAt = (principal.kind === "key" ? principal.provenAt : undefined) ?? now;
    const session: Session<Data> = {
      socket,
      principal,
      data,
      provenUntil: needsProof(principal) ? provenAt + proofMs : null,
    };
    ctx.acceptWebSocket(socket);
    this.#sessions.set(socket, session);
    this.keep(session);
    timers.setNoLater(timer, this.#dueAt(session));
    return session;
  }

  /** Stores what has changed in the session. */
  keep({ socket, principal, data, provenUntil }: Session<Data>): void {
    socket.serializeAttachment({ principal, data, provenUntil });
  }

  send({ socket }: Pick<Session<Data>, "socket">, text: string): void {
    try {
      socket.send(text);
    } catch {
      // The peer is gone, and its close has not come to us yet.
      this.forget(socket);
    }
  }

  /** Sends to every socket, except those that are left out. The text is made once. */
  broadcast(text: string, isMeant: (session: Session<Data>) => boolean = () => true): void {
    for (const session of this.all()) if (isMeant(session)) this.send(session, text);
  }

  close({ socket }: Pick<Session<Data>, "socket">, code: number, reason: string): void {
    this.forget(socket);
    socket.close(code, reason);
  }

  closeWhere(isMeant: (session: Session<Data>) => boolean, code: number, reason: string): void {
    for (const session of this.all()) if (isMeant(session)) this.close(session, code, reason);
  }

  /** Closes the session if its credentials have run out. Answers whether they have. */
  closeIfExpired(session: Session<Data>): boolean {
    if (this.#expiresAt(session) > this.#around.clock.now()) return false;
    this.close(session, closeCodes.tokenExpired, "the token has expired: refresh it and reconnect");
    return true;
  }

  forget(socket: WebSocket): void {
    this.#sessions.delete(socket);
  }

  /** The timer went off. */
  onTimer(): void {
    const { ctx, timers, clock, timer, proofName } = this.#around;
    const unproven = new Map<string, Session<Data>>();
    let next = never;
    for (const session of this.all()) {
      if (this.closeIfExpired(session)) continue;
      const isDue = this.#dueAt(session) <= clock.now();
      if (isDue) unproven.set(proofName(session), session);
      next = Math.min(next, isDue ? this.#expiresAt(session) : this.#dueAt(session));
    }
    // Set before anybody has answered: a crash meanwhile is followed by another proof.
    if (next < never) timers.set(timer, next);
    for (const [name, session] of unproven) ctx.waitUntil(this.#prove(name, session));
  }

  /** No answer is no proof: then the sessions' time runs out. */
  async #prove(name: string, asked: Session<Data>): Promise<void> {
    const { timers, clock, timer, proofMs, proofAnswerMs, proofName, prove } = this.#around;
    const askedAt = clock.now();
    try {
      const hasRights = await withTimeout(proofAnswerMs, prove(asked));
      for (const session of this.all()) {
        if (session.provenUntil === null || proofName(session) !== name) continue;
        if (!hasRights) {
          this.close(session, closeCodes.tokenExpired, "these credentials do not hold any more");
          continue;
        }
        session.provenUntil = Math.max(session.provenUntil, askedAt + proofMs);
        this.keep(session);
        timers.setNoLater(timer, this.#dueAt(session));
      }
    } catch (error) {
      log.warn("socket.unproven", { reason: error instanceof Error ? error.message : String(error) });
    }
  }

  #expiresAt({ principal, provenUntil }: Session<Data>): number {
    return Math.min(principal.kind === "entity" ? principal.expiresAt : never, provenUntil ?? never);
  }

  /** When something is to be done about the session: rights are proven again before they run out. */
  #dueAt(session: Session<Data>): number {
    const { provenUntil } = session;
    return Math.min(this.#expiresAt(session), provenUntil === null ? never : provenUntil - this.#around.proofLeadMs);
  }
}
