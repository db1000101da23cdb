import ReconnectingWebSocket from "partysocket/ws";
import { pingText } from "../protocol/events.ts";

/**
 * A WebSocket that comes back: exponential backoff with jitter, at once when the network returns, and a
 * heartbeat that notices a line which is dead without saying so.
 *
 * Invariants
 * 1. Every opening asks for its address anew, so it carries the newest token and cursor.
 * 2. After `close` nothing is reported any more.
 */
export type ConnectionTimings = {
  /** The first wait after a drop; each further one is longer, up to `maxDelayMs`. */
  minDelayMs: number;
  maxDelayMs: number;
  heartbeatMs: number;
  /** How long a heartbeat may stay unanswered. */
  silenceMs: number;
};

export const defaultTimings: ConnectionTimings = {
  minDelayMs: 300,
  maxDelayMs: 15_000,
  heartbeatMs: 20_000,
  silenceMs: 8_000,
};

export type ConnectionEvents = {
  /** Where to connect; null to give up. `failed` says that the opening before this one never opened. */
  address(attempt: { failed: boolean }): Promise<string | null>;
  text(text: string): void;
  down(event: { code: number; attempt: number }): void;
  /** Whether a close with this code is to be followed by another opening. */
  reconnects(code: number): boolean;
};

export type Connection = {
  /** Whether it was sent; nothing is kept for later. */
  send(text: string): boolean;
  close(): void;
};

const growth = 1.7;

export const connect = (events: ConnectionEvents, timings: ConnectionTimings): Connection => {
  let closed = false;
  let opened = true; // before the first opening, none has failed
  let silenceTimer: ReturnType<typeof setTimeout> | undefined;

  const address = async (): Promise<string> => {
    const failed = !opened;
    opened = false;
    // Partysocket's waits are the same for everyone: spread them, or a restarted server meets all clients at once.
    if (socket.retryCount > 0) {
      const spread = Math.min(timings.maxDelayMs, timings.minDelayMs * growth ** socket.retryCount) / 2;
      await new Promise((resolve) => setTimeout(resolve, Math.random() * spread));
    }
    const url = await events.address({ failed });
    if (url === null) close();
    return url ?? "";
  };

  const socket: ReconnectingWebSocket = new ReconnectingWebSocket(address, null, {
    minReconnectionDelay: timings.minDelayMs,
    maxReconnectionDelay: timings.maxDelayMs,
    reconnectionDelayGrowFactor: growth,
    connectionTimeout: 10_000,
    minUptime: 3_000,
    shouldReconnectOnClose: (event) => !closed && events.reconnects(event.code),
  });

  const heartbeat = (): void => {
    if (socket.readyState !== socket.OPEN) return;
    socket.send(pingText);
    silenceTimer ??= setTimeout(() => {
      silenceTimer = undefined;
      socket.reconnect();
    }, timings.silenceMs);
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
    opened = true;
    heartbeat(); // without a first frame of the client, a hibernatable object's close ends only 10 s later
  });
  socket.addEventListener("message", (event) => {
    heard();
    if (!closed && typeof event.data === "string") events.text(event.data);
  });
  socket.addEventListener("close", (event) => {
    heard();
    if (!closed) events.down({ code: event.code, attempt: socket.retryCount });
  });

  const heartbeatTimer = setInterval(heartbeat, timings.heartbeatMs);
  const hasNetworkEvents = typeof globalThis.addEventListener === "function";
  if (hasNetworkEvents) globalThis.addEventListener("online", online);

  const close = (): void => {
    closed = true;
    heard();
    clearInterval(heartbeatTimer);
    if (hasNetworkEvents) globalThis.removeEventListener("online", online);
    socket.close();
  };
  return {
    send: (text) => {
      if (closed || socket.readyState !== socket.OPEN) return false;
      socket.send(text);
      return true;
    },
    close,
  };
};
