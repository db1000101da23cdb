import { vi } from "vitest";
import { BlockFrame } from "../../src/protocol/block.ts";

/** Who watches a block: every frame is checked against the protocol as it comes. */
export const listenToBlock = (socket: WebSocket) => {
  const frames: BlockFrame[] = [];
  const heard = { pongs: 0, closed: undefined as number | undefined };
  socket.addEventListener("message", ({ data }) => {
    if (data === "pong") heard.pongs += 1;
    else frames.push(BlockFrame.parse(JSON.parse(String(data))));
  });
  socket.addEventListener("close", ({ code }) => {
    heard.closed = code;
  });
  socket.accept();
  return {
    socket,
    frames,
    heard,
    until: (count: number) => vi.waitUntil(() => frames.length >= count, { timeout: 5000 }),
    untilClosed: () => vi.waitUntil(() => heard.closed, { timeout: 5000 }),
  };
};
