import * as z from "zod";

/**
 * Server-Sent Events over a space's socket.
 *
 * Invariants
 * 1. `id:` is set only to a cursor up to which this client has been sent everything.
 * 2. The socket is closed when the client goes, and the client is told when the socket closes.
 * 3. A client that does not read is cut off, not buffered for.
 */
const Frame = z.looseObject({ type: z.string(), cursor: z.int().optional() });

const heartbeatMs = 15_000;
/** Frames that wait for a slow client. Beyond that it is told to slow down and has to come back with its cursor. */
export const maxWaitingFrames = 2000;
const slowDown = {
  code: 4429,
  reason: `${maxWaitingFrames} frames wait for the client (maxWaitingFrames): reconnect with the last event's id`,
};

/**
 * One frame as an event. A welcome's cursor is where the client stands, so it is an id too. `isBehind`: it is not, and what
 * the client missed follows it.
 */
export const eventOf = (data: string, isBehind = false): string => {
  const { type, cursor } = Frame.parse(JSON.parse(data));
  const id = isBehind && type === "welcome" ? undefined : cursor;
  return `event: ${type}\n${id === undefined ? "" : `id: ${id}\n`}data: ${data}\n\n`;
};

const closedEvent = (code: number, reason: string): string =>
  `event: closed\ndata: ${JSON.stringify({ code, reason })}\n\n`;

/** Bridges an accepted socket onto an event stream. */
export const bridge = (socket: WebSocket, signal: AbortSignal, isBehind = false): ReadableStream<Uint8Array> => {
  const encoder = new TextEncoder();
  let heartbeat: ReturnType<typeof setInterval> | undefined;
  let isOver = false;
  const over = (): boolean => {
    const was = isOver;
    isOver = true;
    clearInterval(heartbeat);
    return was;
  };
  const hangUp = (): void => {
    if (!over()) socket.close(1000, "the client left");
  };
  return new ReadableStream<Uint8Array>(
    {
      start: (controller) => {
        const send = (text: string): void => controller.enqueue(encoder.encode(text));
        const finish = (code: number, reason: string): void => {
          if (over()) return;
          send(closedEvent(code, reason));
          controller.close();
        };
        socket.addEventListener("message", ({ data }) => {
          if (isOver || typeof data !== "string") return;
          send(eventOf(data, isBehind));
          if ((controller.desiredSize ?? 0) > 0) return;
          socket.close(slowDown.code, slowDown.reason);
          finish(slowDown.code, slowDown.reason);
        });
        socket.addEventListener("close", ({ code, reason }) => finish(code, reason));
        socket.addEventListener("error", () => finish(1006, "the space could not be reached"));
        signal.addEventListener("abort", hangUp);
        heartbeat = setInterval(() => {
          if (!isOver) send(": still here\n\n");
        }, heartbeatMs);
        socket.accept();
      },
      cancel: hangUp,
    },
    { highWaterMark: maxWaitingFrames },
  );
};
