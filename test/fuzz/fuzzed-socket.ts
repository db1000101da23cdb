import { exports } from "cloudflare:workers";
import { ServerFrame } from "../../src/protocol/events.ts";
import { ids } from "../support/house.ts";
import type { FuzzedFrame } from "./frames.ts";
import { marked, type Stage } from "./stage.ts";

/** A member's socket that knows when a frame has been dealt with: what is sent after it has been answered. */
export class FuzzedSocket {
  readonly #socket: WebSocket;
  readonly #stage: Stage;
  #frames: ServerFrame[] = [];
  #awaited: { toolCallId: string; seen: () => void } | undefined;
  /** Frames that are none of the protocol's. */
  readonly foreign: string[] = [];
  closedBy: number | undefined;

  private constructor(socket: WebSocket, stage: Stage) {
    this.#socket = socket;
    this.#stage = stage;
    socket.addEventListener("message", ({ data }) => this.#take(String(data)));
    socket.addEventListener("close", ({ code }) => {
      this.closedBy = code;
      this.#awaited?.seen();
    });
    socket.accept();
  }

  static async open(stage: Stage): Promise<FuzzedSocket> {
    const token = stage.bearers.mona ?? "";
    const response = await exports.default.fetch(`https://colloquy.test/v1/spaces/${stage.marks.spc0}/stream`, {
      headers: { upgrade: "websocket", authorization: `Bearer ${token}` },
    });
    if (!response.webSocket) throw new Error(`no socket: ${response.status}`);
    return new FuzzedSocket(response.webSocket, stage);
  }

  /** Sends a frame. Resolves, with all that came meanwhile, once the space has dealt with it or closed the socket. */
  async send({ data, binary }: FuzzedFrame): Promise<ServerFrame[]> {
    this.#frames = [];
    const text = marked(data, this.#stage);
    const { promise, resolve } = Promise.withResolvers<void>();
    // An answer to a call that never was is refused without being a bad frame: it follows what was before it.
    const toolCallId = ids.mintOwned("tc", this.#stage.marks.agent1 ?? "");
    this.#awaited = { toolCallId, seen: resolve };
    this.#socket.send(binary ? new TextEncoder().encode(text) : text);
    this.#socket.send(JSON.stringify({ type: "tool.result", toolCallId, result: null }));
    await promise;
    return this.#frames;
  }

  close(): void {
    this.#socket.close();
  }

  #take(data: string): void {
    if (data === "pong") return;
    const parsed = ServerFrame.safeParse(JSON.parse(data));
    if (!parsed.success) return void this.foreign.push(data);
    const isEnd = parsed.data.type === "error" && parsed.data.toolCallId === this.#awaited?.toolCallId;
    if (isEnd) this.#awaited?.seen();
    else this.#frames.push(parsed.data);
  }
}
