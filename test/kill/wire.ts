import { ServerFrame } from "../../src/protocol/events.ts";

/**
 * Looks over the shoulder of the SDK, which mends what it can: what came over each socket, before it was reduced.
 * Put on once for the whole process.
 */
export type Wire = {
  /** Durable events that came again, or not in order. A person's own message comes again where it was sent again. */
  doubled: number;
  /** Welcomes that did not resume although a cursor was sent: the log had forgotten what it had told. */
  forgotten: number;
  connections: number;
};

const wires = new Map<string, Wire>();

/** What came for the holder of this token; it grows as frames come. */
export const wireOf = (token: string): Wire => {
  const wire = wires.get(token) ?? { doubled: 0, forgotten: 0, connections: 0 };
  wires.set(token, wire);
  return wire;
};

const frameIn = (data: unknown): ServerFrame | undefined => {
  if (typeof data !== "string" || !data.startsWith("{")) return undefined;
  return ServerFrame.safeParse(JSON.parse(data)).data;
};

const watch = (socket: WebSocket, address: string): void => {
  const { searchParams } = new URL(address);
  const wire = wireOf(searchParams.get("token") ?? "");
  const after = searchParams.get("cursor");
  let cursor = Number(after ?? 0);
  let self = "";
  socket.addEventListener("open", () => {
    wire.connections += 1;
  });
  socket.addEventListener("message", ({ data }) => {
    const frame = frameIn(data);
    if (frame?.type === "welcome") {
      self = frame.you.id;
      if (after === null) cursor = frame.cursor;
      else if (!frame.resumed) wire.forgotten += 1;
    } else if (frame && "cursor" in frame) {
      const isOwn = frame.type === "space.message" && frame.message.sender.id === self;
      if (frame.cursor <= cursor && !isOwn) wire.doubled += 1;
      cursor = Math.max(cursor, frame.cursor);
    }
  });
};

/** From now on every socket of this process is watched. */
export const watchSockets = (): void => {
  globalThis.WebSocket = class extends WebSocket {
    constructor(address: string | URL, protocols?: string | string[]) {
      super(address, protocols ?? []);
      watch(this, String(address));
    }
  };
};
