import { WebSocket } from "ws";

/** One client's socket and every frame that came, with its time of arrival (milliseconds since the epoch). */
export type Listening = { socket: WebSocket; frames: { at: number; data: Buffer }[] };

export const now = (): number => performance.timeOrigin + performance.now();

/** Opens `count` sockets on one address, a few at a time. Resolves when all are open. */
export const openSockets = async (
  url: string,
  count: number,
  headers: Record<string, string> = {},
): Promise<Listening[]> => {
  const atOnce = 25;
  const all: Listening[] = [];
  while (all.length < count) {
    const batch = Math.min(atOnce, count - all.length);
    all.push(...(await Promise.all(Array.from({ length: batch }, () => openSocket(url, headers)))));
  }
  return all;
};

const openSocket = (url: string, headers: Record<string, string>): Promise<Listening> =>
  new Promise((opened, failed) => {
    const socket = new WebSocket(url.replace(/^http/, "ws"), { headers, perMessageDeflate: false });
    const listening: Listening = { socket, frames: [] };
    // Frames are kept as they come and read later: reading them now would be measured too.
    socket.on("message", (data: Buffer) => listening.frames.push({ at: now(), data }));
    socket.once("open", () => opened(listening));
    socket.once("error", failed);
  });

export const closeSockets = (all: Listening[]): void => {
  for (const { socket } of all) socket.terminate();
};

/** Resolves when `done` holds of every one of them. Looked at after each frame, so that nothing polls. */
export const whenAll = (
  all: Listening[],
  done: (listening: Listening) => boolean,
  timeoutMs = 300_000,
): Promise<void> =>
  new Promise((resume, fail) => {
    let left = 0;
    const late = setTimeout(
      () => fail(new Error(`${left} of ${all.length} sockets have not got everything`)),
      timeoutMs,
    );
    const finish = (): void => {
      clearTimeout(late);
      resume();
    };
    for (const listening of all) {
      if (done(listening)) continue;
      left += 1;
      const look = (): void => {
        if (!done(listening)) return;
        listening.socket.off("message", look);
        left -= 1;
        if (left === 0) finish();
      };
      listening.socket.on("message", look);
      listening.socket.once("close", (code) =>
        fail(new Error(`a socket was closed (${code}) before it got everything`)),
      );
    }
    if (left === 0) finish();
  });
