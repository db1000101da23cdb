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
export const whenAll = async (
  all: Listening[],
  done: (listening: Listening) => boolean,
  timeoutMs = 300_000,
): Promise<void> => {
  const late = AbortSignal.timeout(timeoutMs);
  await Promise.all(all.map((listening) => when(listening, done, late)));
};

const when = (listening: Listening, done: (listening: Listening) => boolean, late: AbortSignal): Promise<void> =>
  new Promise((resume, fail) => {
    if (done(listening)) return resume();
    const { socket } = listening;
    const forget = (): void => {
      socket.off("message", look).off("close", lost);
      late.removeEventListener("abort", lost);
    };
    const look = (): void => {
      if (!done(listening)) return;
      forget();
      resume();
    };
    const lost = (): void => {
      forget();
      const why = late.aborted ? "is too late" : "was closed";
      fail(new Error(`a socket ${why}: it got ${listening.frames.length} frames and not everything`));
    };
    socket.on("message", look).once("close", lost);
    late.addEventListener("abort", lost);
  });
