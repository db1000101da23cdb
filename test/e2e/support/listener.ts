import { WebSocket } from "ws";
import { ServerFrame } from "../../../src/protocol/events.ts";

/** A client on a space's stream that keeps every frame. */
export type Listener = {
  frames: ServerFrame[];
  /** Resolves once `met` holds of what came so far. */
  until(what: string, met: (frames: ServerFrame[]) => boolean): Promise<void>;
  /** Resolves when the connection is gone. */
  closed: Promise<void>;
  close(): void;
};

const patienceMs = 45_000;

export const listen = async (url: string, spaceId: string, token: string, cursor?: number): Promise<Listener> => {
  const after = cursor === undefined ? "" : `&cursor=${cursor}`;
  const socket = new WebSocket(`${url.replace(/^http/, "ws")}/v1/spaces/${spaceId}/stream?token=${token}${after}`);
  const frames: ServerFrame[] = [];
  const waiting = new Set<() => void>();
  socket.on("message", (data) => {
    frames.push(ServerFrame.parse(JSON.parse(String(data))));
    for (const look of waiting) look();
  });
  const closed = new Promise<void>((gone) => socket.once("close", () => gone()));
  const listener: Listener = {
    frames,
    closed,
    close: () => socket.terminate(),
    until: (what, met) =>
      new Promise((resume, fail) => {
        const seen = (): string => frames.map((frame) => frame.type).join(" ");
        const late = setTimeout(
          () => end(() => fail(new Error(`no ${what} in time; there came: ${seen()}`))),
          patienceMs,
        );
        const end = (settle: () => void): void => {
          waiting.delete(look);
          clearTimeout(late);
          settle();
        };
        const look = (): void => {
          if (met(frames)) end(resume);
        };
        waiting.add(look);
        look();
      }),
  };
  await new Promise<void>((opened, failed) => {
    socket.once("open", opened);
    socket.once("error", failed);
  });
  socket.on("error", () => undefined);
  await listener.until("welcome", (got) => got.some((frame) => frame.type === "welcome"));
  return listener;
};
