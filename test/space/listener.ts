import { vi } from "vitest";
import type * as z from "zod";
import { ServerFrame } from "../../src/protocol/events.ts";
import { type Principal, principalHeader } from "../../src/protocol/principal.ts";
import type { House } from "./fixture.ts";

type Frame = z.infer<typeof ServerFrame>;
type FrameOf<Type extends Frame["type"]> = Extract<Frame, { type: Type }>;

/** A member's socket in a test: every frame is checked against the protocol as it comes. */
export class Listener {
  readonly frames: Frame[] = [];
  readonly socket: WebSocket;
  closed: { code: number; reason: string } | undefined;

  constructor(socket: WebSocket) {
    this.socket = socket;
    socket.addEventListener("message", ({ data }) => {
      if (data !== "pong") this.frames.push(ServerFrame.parse(JSON.parse(String(data))));
    });
    socket.addEventListener("close", ({ code, reason }) => {
      this.closed = { code, reason };
    });
    socket.accept();
  }

  of<Type extends Frame["type"]>(type: Type): FrameOf<Type>[] {
    return this.frames.filter((frame): frame is FrameOf<Type> => frame.type === type);
  }

  /** What came after the welcome, by type. */
  get types(): string[] {
    return this.frames.slice(1).map(({ type }) => type);
  }

  /** The text of a stream as a client would have it now. */
  textOf(streamId: string): string {
    const welcome = this.of("welcome")[0]?.streams.find((stream) => stream.streamId === streamId);
    const deltas = this.of("tool-input-delta").filter((frame) => frame.streamId === streamId);
    return (welcome?.text ?? "") + deltas.map((frame) => frame.textDelta ?? frame.inputDelta ?? "").join("");
  }

  send(frame: unknown): void {
    this.socket.send(typeof frame === "string" ? frame : JSON.stringify(frame));
  }

  async until(type: Frame["type"], count = 1): Promise<void> {
    await vi.waitUntil(() => this.of(type).length >= count);
  }

  async untilClosed(): Promise<{ code: number; reason: string }> {
    await vi.waitUntil(() => this.closed !== undefined);
    return this.closed ?? { code: 0, reason: "" };
  }
}

/** The answer to an upgrade, whatever it is. */
export const upgrade = (home: House, principal: Principal, query = ""): Promise<Response> =>
  home.rpc.fetch(
    new Request(`https://colloquy.test/stream${query}`, {
      headers: { upgrade: "websocket", [principalHeader]: JSON.stringify(principal) },
    }),
  );

export const listen = async (home: House, principal: Principal, query = ""): Promise<Listener> => {
  const { webSocket } = await upgrade(home, principal, query);
  if (!webSocket) throw new Error("the space refused the socket");
  const listener = new Listener(webSocket);
  await listener.until("welcome");
  return listener;
};
