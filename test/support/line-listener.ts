import { vi } from "vitest";
import type * as z from "zod";
import { type LineEvent, LineFrame, type LineWelcome } from "../../src/protocol/line.ts";
import { call } from "./house.ts";

type Frame = z.infer<typeof LineFrame>;
type Type = LineEvent["type"];
type EventOf<Name extends Type> = Extract<LineEvent, { type: Name }>;

/** A person's line in a test: every frame is checked against the protocol as it comes. */
export class LineListener {
  readonly frames: Frame[] = [];
  readonly socket: WebSocket;
  closed: number | undefined;

  constructor(socket: WebSocket) {
    this.socket = socket;
    socket.addEventListener("message", ({ data }) => {
      if (data !== "pong") this.frames.push(LineFrame.parse(JSON.parse(String(data))));
    });
    socket.addEventListener("close", ({ code }) => {
      this.closed = code;
    });
    socket.accept();
  }

  get events(): LineEvent[] {
    return this.frames.filter((frame): frame is LineEvent => "type" in frame);
  }

  of<Name extends Type>(type: Name): EventOf<Name>[] {
    return this.events.filter((event): event is EventOf<Name> => event.type === type);
  }

  get welcome(): LineWelcome {
    const [welcome] = this.of("welcome");
    if (!welcome) throw new Error("no welcome came");
    return welcome;
  }

  /** The types of a space's own frames. */
  framesOf(spaceId: string): string[] {
    return this.frames.flatMap((frame) => ("frame" in frame && frame.spaceId === spaceId ? [frame.frame.type] : []));
  }

  /** How the space stands now, as the line told last. */
  summaryOf(spaceId: string) {
    const told = [...this.welcome.spaces, ...this.of("space.summary")];
    return told.findLast((summary) => summary.spaceId === spaceId);
  }

  send(frame: object): void {
    this.socket.send(JSON.stringify(frame));
  }

  until = <Name extends Type>(type: Name, count = 1): Promise<EventOf<Name>[]> =>
    vi.waitFor(() => {
      const found = this.of(type);
      if (found.length < count) throw new Error(`${found.length} of ${count} ${type}: ${JSON.stringify(this.events)}`);
      return found;
    });

  untilClosed = (): Promise<number> =>
    vi.waitFor(() => {
      if (this.closed === undefined) throw new Error("the line is open");
      return this.closed;
    });
}

/** Opens a line by HTTP, as a person's own client would. */
export const openLine = async (bearer: string, query = "", as?: string): Promise<LineListener> => {
  const headers = { upgrade: "websocket" };
  const answer = await call(`/v1/stream${query}`, { bearer, headers, ...(as !== undefined && { as }) });
  if (!answer.webSocket) throw new Error(`no line: ${answer.status} ${await answer.text()}`);
  const line = new LineListener(answer.webSocket);
  await line.until("welcome");
  return line;
};
