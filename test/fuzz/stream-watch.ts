import { exports } from "cloudflare:workers";
import { ServerFrame } from "../../src/protocol/events.ts";
import { unsoundness } from "../../src/shared/sound-json.ts";
import type { Stage } from "./stage.ts";

/** A member who listens: every frame is one of the protocol's and well-formed, and every stream that begins ends. */
export class StreamWatch {
  readonly #open = new Set<string>();
  readonly #faults: string[] = [];
  readonly #socket: WebSocket;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener("message", ({ data }) => this.#take(String(data)));
    socket.accept();
  }

  static async open({ house, marks }: Stage): Promise<StreamWatch> {
    const headers = {
      upgrade: "websocket",
      authorization: `Bearer ${house.secretKey}`,
      "x-entity-id": marks.ent0 ?? "",
    };
    const response = await exports.default.fetch(`https://colloquy.test/v1/spaces/${marks.spc0}/stream`, { headers });
    if (!response.webSocket) throw new Error(`no socket: ${response.status}`);
    return new StreamWatch(response.webSocket);
  }

  /** Streams that have begun and not ended. */
  get open(): number {
    return this.#open.size;
  }

  /** An agent may be done before its space has told the last of it: waits for that, 5 s at most. */
  async quiet(): Promise<void> {
    for (let waited = 0; this.#open.size > 0 && waited < 500; waited += 1) await scheduler.wait(10);
  }

  /** Returns the faults found in the frames so far, and clears them. */
  faults(): string[] {
    return this.#faults.splice(0);
  }

  close(): void {
    this.#socket.close();
  }

  #take(data: string): void {
    const parsed = ServerFrame.safeParse(JSON.parse(data));
    if (!parsed.success) return void this.#faults.push(`sent what is no frame: ${data.slice(0, 300)}`);
    const frame = parsed.data;
    const issue = unsoundness(frame);
    if (issue) this.#faults.push(`sent a ${frame.type} that is not sound: ${issue.path}`);
    if (frame.type === "tool-call.start") this.#open.add(frame.streamId);
    if (frame.type === "tool-call.error" || frame.type === "tool-call.complete") this.#open.delete(frame.streamId);
    if (frame.type === "space.message" && frame.message.streamId) this.#open.delete(frame.message.streamId);
  }
}
