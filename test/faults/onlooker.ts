import type { ServerFrame } from "../../src/protocol/events.ts";
import type { EntityPrincipal } from "../../src/protocol/principal.ts";

/**
 * A member's client that comes back with its cursor whenever it is told to, and keeps what it was told.
 *
 * Invariants
 * 1. Each durable event comes once and in order, over however many connections (D3).
 * 2. A stream that began ends in exactly one way, or with its connection (D4).
 * What breaks them is in `faults`.
 */
type Door = { fetch(request: Request): Promise<Response> };

export class Onlooker {
  readonly faults: string[] = [];
  readonly #door: () => Door;
  readonly #principal: EntityPrincipal;
  readonly #open = new Set<string>();
  readonly #active = new Set<string>();
  readonly #ended = new Set<string>();
  #cursor = 0;
  #connected = false;
  #welcomed = false;
  #frames = 0;

  constructor(door: () => Door, principal: EntityPrincipal) {
    this.#door = door;
    this.#principal = principal;
  }

  get frames(): number {
    return this.#frames;
  }

  get cursor(): number {
    return this.#cursor;
  }

  /** Streams and agents that its screen still shows as under way. */
  get underWay(): string[] {
    return [...this.#open, ...this.#active];
  }

  /** Connects, where it is not connected. Resolves when it is; what it missed may still come. */
  async connect(): Promise<void> {
    if (this.#connected) return;
    const response = await this.#door().fetch(
      new Request(`https://space.test/v1/spaces/any/stream?cursor=${this.#cursor}`, {
        headers: { Upgrade: "websocket", "x-colloquy-principal": JSON.stringify(this.#principal) },
      }),
    );
    const socket = response.webSocket;
    if (!socket) throw new Error(`no socket: ${response.status}`);
    this.#connected = true;
    this.#welcomed = false;
    const gone = (): void => {
      this.#connected = false;
    };
    socket.addEventListener("close", gone);
    socket.addEventListener("error", gone);
    socket.addEventListener("message", ({ data }) => {
      const frame: ServerFrame = JSON.parse(String(data));
      this.#take(frame);
    });
    socket.accept();
  }

  get welcomed(): boolean {
    return this.#connected && this.#welcomed;
  }

  #take(frame: ServerFrame): void {
    this.#frames += 1;
    if ("cursor" in frame && frame.type !== "welcome") {
      if (frame.cursor !== this.#cursor + 1) this.faults.push(`event ${frame.cursor} came after ${this.#cursor}`);
      this.#cursor = frame.cursor;
    }
    switch (frame.type) {
      case "welcome":
        this.#welcomed = true;
        if (!frame.resumed) this.faults.push("a client that came back was told to load everything anew");
        this.#open.clear();
        this.#active.clear();
        for (const { streamId } of frame.streams) this.#open.add(streamId);
        for (const { runId } of frame.active) this.#active.add(runId);
        return;
      case "agent.active":
        this.#active.add(frame.runId);
        return;
      case "agent.inactive":
        this.#active.delete(frame.runId);
        return;
      case "tool-call.start":
        this.#open.add(frame.streamId);
        return;
      case "tool-call.error":
        this.#end(frame.streamId);
        return;
      case "space.message":
        if (frame.message.streamId !== undefined) this.#end(frame.message.streamId);
    }
  }

  #end(streamId: string): void {
    if (!this.#open.delete(streamId)) return;
    if (this.#ended.has(streamId)) this.faults.push("a stream ended twice");
    this.#ended.add(streamId);
  }
}
