import ReconnectingWebSocket from "partysocket/ws";
import * as z from "zod";
import { closeCodes, pingText, pongText } from "../protocol/events.ts";
import { ColloquyError } from "../shared/errors.ts";
import type { Credentials } from "./credentials.ts";
import type { ClosedReason, ConnectionState } from "./space-state.ts";

/**
 * One stream of Colloquy over a WebSocket, followed until it ends for good. A dropped line comes back with exponential
 * backoff and jitter, and at once when the network returns. A heartbeat notices a line that died silently.
 *
 * Invariants
 * 1. Every opening asks for its address anew, so it carries the newest token and cursor.
 * 2. Once the stream is closed, for whatever reason, nothing more is reported.
 * 3. An expired token is refreshed before the next opening. If it cannot be refreshed, the stream ends.
 */
export type FollowedStream<Schema extends z.ZodType> = {
  credentials: Credentials;
  schema: Schema;
  /** Where to connect, with the newest token and cursor. */
  address(): string;
  /** Requests the same thing by HTTP: a socket that does not open cannot say why, a response can. */
  probe(): Promise<unknown>;
  frame(frame: z.infer<Schema>): void;
  malformed?(reason: string): void;
  /** Every state but `open`, which the first frame reports. */
  connection(state: ConnectionState): void;
};

export type Following = {
  /** Returns whether the text was sent; it is not kept for later. */
  send(text: string): boolean;
  end(reason: ClosedReason): void;
};

const defaultTimings = {
  /** The first wait after a drop; each further one is longer, up to `maxDelayMs`. */
  minDelayMs: 300,
  maxDelayMs: 15_000,
  heartbeatMs: 20_000,
  /** How long a heartbeat may stay unanswered. */
  silenceMs: 8_000,
};
export type ConnectionTimings = typeof defaultTimings;

const growth = 1.7;

const endings = new Map<number, "removed" | "deleted">([
  [closeCodes.removed, "removed"],
  [closeCodes.spaceDeleted, "deleted"],
]);

export const followStream = <Schema extends z.ZodType>(
  stream: FollowedStream<Schema>,
  timings: Partial<ConnectionTimings> = {},
): Following => {
  const { minDelayMs, maxDelayMs, heartbeatMs, silenceMs } = { ...defaultTimings, ...timings };
  const { credentials } = stream;
  let isClosed = false;
  let hasOpened = true; // before the first opening, none has failed
  /** The token that the last opening carried, and the one that a socket was closed for. */
  let usedToken = "";
  let expiredToken: string | null = null;
  let silenceTimer: ReturnType<typeof setTimeout> | undefined;

  /** The reason against another opening, or null. */
  const endingBefore = async (hasFailed: boolean): Promise<ClosedReason | null> => {
    if (expiredToken !== null && (await credentials.refresh(expiredToken)) === null) return "signed_out";
    expiredToken = null;
    return hasFailed ? refusal(stream.probe()) : null;
  };

  const address = async (): Promise<string> => {
    const hasFailed = !hasOpened;
    hasOpened = false;
    // Partysocket's waits have no jitter. Without it, a restarted server meets all clients at once.
    if (socket.retryCount > 0) {
      const spread = Math.min(maxDelayMs, minDelayMs * growth ** socket.retryCount) / 2;
      await new Promise((resolve) => setTimeout(resolve, Math.random() * spread));
    }
    const ending = await endingBefore(hasFailed);
    if (ending !== null) {
      end(ending);
      return "";
    }
    usedToken = credentials.token();
    return stream.address();
  };

  const socket: ReconnectingWebSocket = new ReconnectingWebSocket(address, null, {
    minReconnectionDelay: minDelayMs,
    maxReconnectionDelay: maxDelayMs,
    reconnectionDelayGrowFactor: growth,
    connectionTimeout: 10_000,
    minUptime: 3_000,
    shouldReconnectOnClose: ({ code }) => !isClosed && !endings.has(code),
  });

  const heartbeat = (): void => {
    if (socket.readyState !== socket.OPEN) return;
    socket.send(pingText);
    silenceTimer ??= setTimeout(() => {
      silenceTimer = undefined;
      socket.reconnect();
    }, silenceMs);
  };
  const heard = (): void => {
    clearTimeout(silenceTimer);
    silenceTimer = undefined;
  };
  const online = (): void => {
    if (socket.readyState === socket.OPEN) heartbeat();
    else socket.reconnect();
  };

  socket.addEventListener("open", () => {
    hasOpened = true;
    heartbeat(); // if the client never sent a frame, a close by a hibernatable object ends only 10 s later
  });
  socket.addEventListener("message", ({ data }) => {
    heard();
    if (isClosed || typeof data !== "string") return;
    const fault = readFrame(stream, data);
    if (fault !== undefined) stream.malformed?.(fault);
  });
  socket.addEventListener("close", ({ code }) => {
    heard();
    if (isClosed) return;
    // How the browser's own session ended, only a request tells, and how long a workspace is suspended.
    if (code === closeCodes.suspended || (code === closeCodes.tokenExpired && usedToken === "")) hasOpened = false;
    else if (code === closeCodes.tokenExpired) expiredToken = usedToken;
    const ending = endings.get(code);
    if (ending) return end(ending);
    const isOffline = globalThis.navigator?.onLine === false;
    stream.connection(isOffline ? { status: "offline" } : { status: "reconnecting", attempt: socket.retryCount });
  });

  const heartbeatTimer = setInterval(heartbeat, heartbeatMs);
  const hasNetworkEvents = typeof globalThis.addEventListener === "function";
  if (hasNetworkEvents) globalThis.addEventListener("online", online);

  const end = (reason: ClosedReason): void => {
    if (isClosed) return;
    isClosed = true;
    heard();
    clearInterval(heartbeatTimer);
    if (hasNetworkEvents) globalThis.removeEventListener("online", online);
    socket.close();
    stream.connection({ status: "closed", reason });
  };

  return {
    send: (text) => {
      if (isClosed || socket.readyState !== socket.OPEN) return false;
      socket.send(text);
      return true;
    },
    end,
  };
};

/**
 * The reason by which the server refuses the stream for good, or null. While the browser's session is another person's
 * (`signed_in`) nothing opens; what waits to be sent goes on waiting for its own person.
 */
const refusal = async (request: Promise<unknown>): Promise<"removed" | "signed_out" | null> => {
  try {
    await request;
  } catch (error) {
    if (!(error instanceof ColloquyError)) throw error;
    if (error.code === "not_found" || error.code === "forbidden") return "removed";
    if (error.code === "unauthorized" || error.code === "token_expired") return "signed_out";
  }
  return null;
};

const Typed = z.object({ type: z.string() });

/** Whether the `type` itself is wrong for every kind of frame. */
const refusesType = (issues: readonly z.core.$ZodIssue[]): boolean =>
  issues.some(
    (issue) =>
      issue.path[0] === "type" ||
      (issue.code === "invalid_union" && issue.errors.length > 0 && issue.errors.every(refusesType)),
  );

/** Hands on one text of a stream as a frame, or answers why it is none. A newer server may have more types. */
const readFrame = <Schema extends z.ZodType>(stream: FollowedStream<Schema>, text: string): string | undefined => {
  if (text === pongText) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return "A frame of the server is not JSON.";
  }
  const frame = stream.schema.safeParse(value);
  if (frame.success) {
    stream.frame(frame.data);
    return undefined;
  }
  const typed = Typed.safeParse(value);
  if (!typed.success) return "A frame of the server has no type.";
  if (refusesType(frame.error.issues)) return undefined;
  return `A ${typed.data.type} frame of the server does not have the expected shape.`;
};
