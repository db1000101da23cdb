import { setTimeout as wait } from "node:timers/promises";
import type * as z from "zod";
import { LineFrame, type NeedsYou, type SpaceSummary } from "../../src/protocol/line.ts";
import type { Message } from "../../src/protocol/message.ts";
import type { Person as Signed } from "../e2e/support/house.ts";

/**
 * A person's line over all of their spaces, which opens again with its cursor however often the server is gone. One that
 * is subscribed to a space gets that space's own frames over it too.
 */
export type Line = {
  /** Ids of the notifications that came, each as often as it came. */
  told: string[];
  /** Ids of what was ever said to need the person. */
  shown: Set<string>;
  /** Notifications that came over the line that is open now, and were not cleared. */
  unread: Set<string>;
  needsYou: Map<string, NeedsYou>;
  summaries: Map<string, SpaceSummary>;
  /** Of the space that it is subscribed to: messages as they came, and places that came again. */
  frames: { saw: string[]; doubled: number; forgotten: number };
  connections(): number;
  isOpen(): boolean;
  close(): void;
};

/** As it is before the kill test watches sockets: a line's frames are no space's. */
const Socket = globalThis.WebSocket;
const againMs = 100;

export const openLine = (url: string, { id, token }: Signed, subscribed?: string): Line => {
  const told: string[] = [];
  const shown = new Set<string>();
  const unread = new Set<string>();
  const needsYou = new Map<string, NeedsYou>();
  const summaries = new Map<string, SpaceSummary>();
  const frames = { saw: [] as string[], doubled: 0, forgotten: 0 };
  let [cursor, place, connections] = [0, 0, 0];
  let [isOver, isOpen] = [false, false];
  let socket: WebSocket | undefined;

  const need = (item: NeedsYou): void => {
    shown.add(item.id);
    needsYou.set(item.id, item);
  };
  const said = (at: number, message: Message): void => {
    if (at > place) frames.saw.push(message.id);
    else if (message.sender.id !== id) frames.doubled += 1;
  };
  const take = (frame: z.infer<typeof LineFrame>): void => {
    if (!("type" in frame)) {
      const { frame: inner } = frame;
      if (inner.type === "welcome" && !inner.resumed) frames.forgotten += 1;
      if (inner.type === "welcome" || !("cursor" in inner)) return;
      if (inner.type === "space.message") said(inner.cursor, inner.message);
      place = Math.max(place, inner.cursor);
      return;
    }
    switch (frame.type) {
      case "welcome":
        // What came over an earlier connection is not cleared any more.
        unread.clear();
        needsYou.clear();
        summaries.clear();
        for (const item of frame.needsYou) need(item);
        for (const summary of frame.spaces) summaries.set(summary.spaceId, summary);
        isOpen = true;
        return;
      case "space.summary":
        if ((summaries.get(frame.spaceId)?.seq ?? 0) <= frame.seq) summaries.set(frame.spaceId, frame);
        return;
      case "needs_you":
        need(frame.item);
        return;
      case "needs_you.done":
        needsYou.delete(frame.id);
        return;
      case "notification":
        told.push(frame.id);
        unread.add(frame.id);
        cursor = Math.max(cursor, frame.cursor);
        return;
      case "notification.cleared":
        for (const gone of frame.ids) unread.delete(gone);
    }
  };
  const connect = (): void => {
    socket = new Socket(`${url.replace("http", "ws")}/v1/stream?token=${token}&cursor=${cursor}`);
    socket.addEventListener("open", () => {
      connections += 1;
      if (subscribed !== undefined) {
        socket?.send(JSON.stringify({ type: "subscribe", spaceId: subscribed, cursor: place }));
      }
    });
    socket.addEventListener("message", ({ data }) => take(LineFrame.parse(JSON.parse(String(data)))));
    socket.addEventListener("close", () => {
      isOpen = false;
      if (!isOver) void wait(againMs).then(connect);
    });
  };
  connect();
  return {
    ...{ told, shown, unread, needsYou, summaries, frames },
    connections: () => connections,
    isOpen: () => isOpen,
    close: () => {
      isOver = true;
      socket?.close();
    },
  };
};
