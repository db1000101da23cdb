import type * as z from "zod";
import { LineFrame } from "../../src/protocol/line.ts";
import type { EntityPrincipal } from "../../src/protocol/principal.ts";

/**
 * A person's line that comes back with its cursor whenever it is told to.
 *
 * Invariants
 * 1. Each notification comes once, over however many connections (I5).
 * 2. What a space says of itself never becomes older (I1).
 * What breaks them is in `faults`.
 */
type Door = { fetch(request: Request): Promise<Response> };
type Frame = z.infer<typeof LineFrame>;

export class LineOnlooker {
  readonly faults: string[] = [];
  readonly #door: () => Door;
  readonly #principal: EntityPrincipal;
  readonly #told = new Set<string>();
  readonly #shown = new Set<string>();
  #needs = new Set<string>();
  #spaces = new Map<string, { seq: number; unread: number; mentions: number; preview: string | undefined }>();
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

  get welcomed(): boolean {
    return this.#connected && this.#welcomed;
  }

  /** How its spaces stand, and how many things were told or shown to need the person, and do now. */
  get shows(): object {
    const spaces = [...this.#spaces.values()].map(({ unread, mentions, preview }) => ({ unread, mentions, preview }));
    return { spaces, told: new Set([...this.#told, ...this.#shown]).size, needs: this.#needs.size };
  }

  async connect(): Promise<void> {
    if (this.#connected) return;
    const headers = { Upgrade: "websocket", "x-colloquy-principal": JSON.stringify(this.#principal) };
    const url = `https://person.test/v1/stream?cursor=${this.#cursor}`;
    const { webSocket: socket, status } = await this.#door().fetch(new Request(url, { headers }));
    if (!socket) throw new Error(`no line: ${status}`);
    this.#connected = true;
    this.#welcomed = false;
    const gone = (): void => {
      this.#connected = false;
    };
    socket.addEventListener("close", gone);
    socket.addEventListener("error", gone);
    socket.addEventListener("message", ({ data }) => this.#take(LineFrame.parse(JSON.parse(String(data)))));
    socket.accept();
  }

  #take(frame: Frame): void {
    this.#frames += 1;
    if (!("type" in frame)) return;
    switch (frame.type) {
      case "welcome":
        this.#welcomed = true;
        this.#needs = new Set();
        this.#spaces = new Map();
        for (const { id } of frame.needsYou) this.#need(id);
        for (const summary of frame.spaces) this.#stand(summary);
        return;
      case "space.summary":
        this.#stand(frame);
        return;
      case "needs_you":
        this.#need(frame.item.id);
        return;
      case "needs_you.done":
        this.#needs.delete(frame.id);
        return;
      case "notification":
        if (this.#told.has(frame.id)) this.faults.push(`the notification ${frame.id} came again`);
        this.#told.add(frame.id);
        this.#cursor = frame.cursor;
    }
  }

  #need(id: string): void {
    this.#needs.add(id);
    this.#shown.add(id);
  }

  #stand({ spaceId, seq, unread, mentions, preview }: Extract<Frame, { type: "welcome" }>["spaces"][number]): void {
    const before = this.#spaces.get(spaceId)?.seq ?? 0;
    if (seq < before) this.faults.push(`a space stood at ${before}, and then at ${seq}`);
    this.#spaces.set(spaceId, { seq, unread, mentions, preview: preview?.text });
  }
}
