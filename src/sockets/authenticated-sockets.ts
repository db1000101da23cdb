import * as z from "zod";
import { closeCodes } from "../protocol/events.ts";
import { type CredentialRpc, credentialUntil } from "../protocol/last-release.ts";
import { credentialOf, neverEnds, Principal, principalHeader } from "../protocol/principal.ts";
import type { Clock } from "../shared/clock.ts";
import { ColloquyError } from "../shared/errors.ts";
import { log } from "../shared/log.ts";
import { meter } from "../shared/meter.ts";
import { withTimeout } from "../shared/timeouts.ts";
import type { Timers } from "../timers/timers.ts";

/**
 * An actor's sockets, each with the credentials that it was opened with. They outlive the object's memory.
 *
 * Invariants
 * 1. What must survive a sleep is in the socket's attachment.
 * 2. A socket closes when its token or key expires. It closes when its rights are denied, and when they were not
 *    proven for `proofMs`. A timer, which survives a sleep, sees to both (S5). Where their end is told (`proveAgain`), one
 *    proof that was asked for after the opening is enough, and after what was told last.
 * 3. A socket that was closed from here has no session from that turn on: what its client still sends is not heard.
 */
export type Session<Data> = {
  socket: WebSocket;
  principal: Principal;
  data: Data;
  /** Until when its rights count as proven; null where their end is told. */
  provenUntil: number | null;
  /** Questions up to this one were asked before its end was told: their answers prove nothing. */
  outdated?: number;
};

type Surroundings<Data> = {
  ctx: Pick<DurableObjectState, "acceptWebSocket" | "getWebSockets" | "waitUntil"> & { id: { toString(): string } };
  timers: Pick<Timers, "set" | "setNoLater">;
  clock: Clock;
  timer: string;
  /** The actor's own data of a socket, beside its credentials. */
  data: z.ZodType<Data>;
  /** How long a proof counts, how long before its end a new one is asked for, and how long the answer may take. */
  proofMs: number;
  proofLeadMs: number;
  proofAnswerMs: number;
  /** Whether somebody tells of the end of these rights. */
  isTold?(principal: Principal): boolean;
  /** Sessions of one name have the same rights: one question proves them all. */
  proofName(session: Session<Data>): string;
  /** Until when the session has its rights at the latest; 0: it has not. Throws where that cannot be told. */
  prove(session: Session<Data>): Promise<number>;
};

const never = Number.POSITIVE_INFINITY;

const Attachment = z.object({ principal: Principal, data: z.unknown(), provenUntil: z.number().nullable() });

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

/** Until when what opened a socket of an object holds at the latest, as its workspace says: 0 where it does not. */
export const credentialsUntil = async (
  workspace: CredentialRpc,
  principal: Principal,
  objectId: string,
): Promise<number> => {
  if (principal.kind === "entity") {
    const until = await credentialUntil(workspace, credentialOf(principal), objectId);
    return until.ok ? until.value : 0;
  }
  const lives = await workspace.keyLives(principal.keyId, principal.scopes);
  return lives.ok && lives.value ? neverEnds : 0;
};

/** The conditions of credentials, as a text. Credentials of one text hold together. */
export const credentialName = (principal: Principal): string =>
  principal.kind === "key" ? `${principal.keyId} ${principal.scopes ?? ""}` : JSON.stringify(credentialOf(principal));

/** Whether credentials hang on this entity, key or session. */
export const hangsOn = (principal: Principal, subject: string): boolean =>
  [principal.entityId, principal.keyId].includes(subject) ||
  (principal.kind === "entity" &&
    [principal.impersonatedBy, principal.session?.id, principal.authId].includes(subject));

/** The object's part of a close that the client began. Without it the connection stays for ten seconds more. */
export const closeBack = (socket: WebSocket, code: number): void => {
  // These four are reserved, and codes outside the range belong to no close: they cannot be sent.
  const canBeSent = code >= 1000 && code < 5000 && ![1004, 1005, 1006, 1015].includes(code);
  if (canBeSent) socket.close(code);
  else socket.close();
};

export type AuthenticatedSockets<Data> = ReturnType<typeof createAuthenticatedSockets<Data>>;

export const createAuthenticatedSockets = <Data>(surroundings: Surroundings<Data>) => {
  const { ctx, timers, clock, timer, proofMs, proofLeadMs, proofAnswerMs, proofName, prove } = surroundings;
  const { isTold = () => false } = surroundings;
  const sessions = new Map<WebSocket, Session<Data>>();
  let questions = 0;
  /** When each subject's end was told lately: a socket that was let in before may be on its way here. */
  const told = new Map<string, number>();
  for (const socket of ctx.getWebSockets()) {
    const attachment = Attachment.safeParse(socket.deserializeAttachment());
    const data = surroundings.data.safeParse(attachment.data?.data);
    if (!attachment.success || !data.success || socket.readyState !== WebSocket.OPEN) continue;
    sessions.set(socket, { socket, ...attachment.data, data: data.data });
  }

  const expiresAt = ({ principal, provenUntil }: Session<Data>): number =>
    Math.min(principal.expiresAt ?? never, provenUntil ?? never);

  /** When something is to be done about the session: rights are proven again before they run out. */
  const dueAt = (session: Session<Data>): number => {
    const { provenUntil } = session;
    return Math.min(expiresAt(session), provenUntil === null ? never : provenUntil - proofLeadMs);
  };

  const counted = (): void => meter.gauge("sockets", ctx.id.toString(), sessions.size);

  const forget = (socket: WebSocket): void => {
    if (sessions.delete(socket)) counted();
  };

  /** Stores what has changed in the session. */
  const keep = ({ socket, principal, data, provenUntil }: Session<Data>): void =>
    socket.serializeAttachment({ principal, data, provenUntil });

  const send = ({ socket }: Pick<Session<Data>, "socket">, text: string): void => {
    try {
      socket.send(text);
    } catch {
      // The peer is gone, and its close has not come to us yet.
      forget(socket);
    }
  };

  const close = ({ socket }: Pick<Session<Data>, "socket">, code: number, reason: string): void => {
    forget(socket);
    socket.close(code, reason);
  };

  /** Closes the session if its credentials have run out. Answers whether they have. */
  const closeIfExpired = (session: Session<Data>): boolean => {
    if (expiresAt(session) > clock.now()) return false;
    close(session, closeCodes.tokenExpired, "the token has expired: refresh it and reconnect");
    return true;
  };

  /** No answer is no proof: it is asked for again until the sessions' time runs out. */
  const proveAll = async (name: string, asked: Session<Data>): Promise<void> => {
    const [askedAt, question] = [clock.now(), ++questions];
    const meant = [...sessions.values()].filter((one) => one.provenUntil !== null && proofName(one) === name);
    try {
      const until = await withTimeout(proofAnswerMs, prove(asked));
      for (const session of meant) {
        if (session.provenUntil === null || !sessions.has(session.socket)) continue;
        if (question <= (session.outdated ?? 0)) continue;
        if (until <= clock.now()) {
          close(session, closeCodes.tokenExpired, "these credentials do not hold any more");
          continue;
        }
        if (until < neverEnds) session.principal.expiresAt = Math.min(session.principal.expiresAt ?? never, until);
        session.provenUntil = isTold(session.principal) ? null : Math.max(session.provenUntil, askedAt + proofMs);
        keep(session);
        timers.setNoLater(timer, dueAt(session));
      }
    } catch (error) {
      timers.setNoLater(timer, clock.now() + proofLeadMs / 3);
      log.warn("socket.unproven", { reason: error instanceof Error ? error.message : String(error) });
    }
  };

  /** Proves what is due, and closes what has run out. */
  const proveDue = (): void => {
    const unproven = new Map<string, Session<Data>>();
    let next = never;
    for (const session of sessions.values()) {
      if (closeIfExpired(session)) continue;
      const isDue = dueAt(session) <= clock.now();
      if (isDue) unproven.set(proofName(session), session);
      next = Math.min(next, isDue ? expiresAt(session) : dueAt(session));
    }
    // Set before anybody has answered: a crash meanwhile is followed by another proof.
    if (next < never) timers.set(timer, next);
    for (const [name, session] of unproven) ctx.waitUntil(proveAll(name, session));
  };

  return {
    ...{ forget, keep, send, close, closeIfExpired },

    get size(): number {
      return sessions.size;
    },

    all: (): Iterable<Session<Data>> => sessions.values(),

    /** Undefined for a socket that was closed from here. */
    of: (socket: WebSocket): Session<Data> | undefined => sessions.get(socket),

    /** Takes the socket in. Throws `token_expired`. */
    accept(socket: WebSocket, principal: Principal, data: Data): Session<Data> {
      const now = clock.now();
      if ((principal.expiresAt ?? never) <= now) {
        throw new ColloquyError("token_expired", "The token has expired: get a new one");
      }
      const { provenAt = now } = principal;
      const isOver = [...told].some(([subject, at]) => at >= provenAt && hangsOn(principal, subject));
      // One that was proven long ago, or before its end was told, has the time that an answer takes.
      const provenUntil = Math.max(isOver ? 0 : provenAt + proofMs, now + proofAnswerMs);
      const session: Session<Data> = { socket, principal, data, provenUntil };
      ctx.acceptWebSocket(socket);
      sessions.set(socket, session);
      counted();
      keep(session);
      const isDue = dueAt(session) <= now;
      timers.setNoLater(timer, isDue ? expiresAt(session) : dueAt(session));
      if (isDue) ctx.waitUntil(proveAll(proofName(session), session));
      return session;
    },

    /** Sends to every socket, except those that are left out. The text is made once. */
    broadcast(text: string, isMeant: (session: Session<Data>) => boolean = () => true): void {
      for (const session of sessions.values()) if (isMeant(session)) send(session, text);
    },

    closeWhere(isMeant: (session: Session<Data>) => boolean, code: number, reason: string): void {
      for (const session of sessions.values()) if (isMeant(session)) close(session, code, reason);
    },

    /** Credentials of this entity, key or session may have ended: each is proven at once, or its socket closes. */
    proveAgain(subject: string): void {
      const [now, soon] = [clock.now(), clock.now() + proofLeadMs];
      for (const [each, at] of told) if (at < now - proofMs) told.delete(each);
      told.set(subject, now);
      for (const session of sessions.values()) {
        if (!hangsOn(session.principal, subject)) continue;
        session.provenUntil = Math.min(session.provenUntil ?? never, soon);
        session.outdated = questions;
        keep(session);
      }
      proveDue();
    },

    /** The timer went off. */
    onTimer: proveDue,
  };
};
