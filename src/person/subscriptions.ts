import type { ActorNamespace } from "../env/env.ts";
import { type LineEvent, maxSubscriptions } from "../protocol/line.ts";
import { type Principal, principalHeader } from "../protocol/principal.ts";
import { ColloquyError, Problem, problem } from "../shared/errors.ts";
import { maxWaitingFrames } from "./bounds.ts";

/** One line, as its subscriptions see it. */
export type Line = { socket: WebSocket; principal: Principal; send(text: string): void };

/** `socket` is set once the space has taken the line in. `waiting`: what the client said until then. */
type Subscription = { socket?: WebSocket; waiting: string[]; isOver: boolean };

/**
 * The spaces whose own frames a line carries. To the space each is a socket of the person's, with the line's credentials: so
 * its rules, its resume and its end are those of the space's own stream.
 *
 * Invariants
 * 1. A subscription ends with its line, and a line hears of the end of a subscription that it did not end.
 * 2. Memory only. A socket between objects keeps this one awake, and ends with it.
 */
export const createSubscriptions = (spaces: ActorNamespace<object>) => {
  const lines = new Map<WebSocket, Map<string, Subscription>>();

  const of = (socket: WebSocket): Map<string, Subscription> => {
    const known = lines.get(socket) ?? new Map<string, Subscription>();
    lines.set(socket, known);
    return known;
  };

  const open = async (principal: Principal, spaceId: string, cursor: number | undefined): Promise<WebSocket> => {
    const url = new URL(`https://space/v1/spaces/${spaceId}/stream`);
    if (cursor !== undefined) url.searchParams.set("cursor", String(cursor));
    const headers = { upgrade: "websocket", [principalHeader]: JSON.stringify(principal) };
    const answer = await spaces.getByName(spaceId).fetch(new Request(url, { headers }));
    if (answer.webSocket) return answer.webSocket;
    const { code, detail } = Problem.parse(await answer.json());
    throw new ColloquyError(code, detail);
  };

  return {
    async subscribe({ socket, principal, send }: Line, spaceId: string, cursor: number | undefined): Promise<void> {
      const own = of(socket);
      if (own.has(spaceId)) throw new ColloquyError("conflict", "This line is subscribed to the space already");
      if (own.size >= maxSubscriptions) {
        const most = `A line subscribes to ${maxSubscriptions} spaces at most (maxSubscriptions)`;
        throw new ColloquyError("limit_reached", `${most}: unsubscribe from one first`);
      }
      const subscription: Subscription = { waiting: [], isOver: false };
      own.set(spaceId, subscription);
      const end = (): boolean => {
        const isFirst = !subscription.isOver;
        subscription.isOver = true;
        if (own.get(spaceId) === subscription) own.delete(spaceId);
        return isFirst;
      };
      const tellEnd = (code: number, reason: string): void => {
        const event: LineEvent = { type: "unsubscribed", spaceId, code, reason };
        if (end()) send(JSON.stringify(event));
      };
      let inner: WebSocket;
      try {
        inner = await open(principal, spaceId, cursor);
      } catch (error) {
        if (end()) throw error;
        return;
      }
      const prefix = `{"spaceId":${JSON.stringify(spaceId)},"frame":`;
      inner.addEventListener("message", ({ data }) => {
        if (!subscription.isOver && typeof data === "string" && data.startsWith("{")) send(`${prefix}${data}}`);
      });
      inner.addEventListener("close", ({ code, reason }) => tellEnd(code, reason));
      inner.addEventListener("error", () => tellEnd(1006, "the space could not be reached"));
      inner.accept();
      if (subscription.isOver) return inner.close(1000, "unsubscribed");
      subscription.socket = inner;
      for (const text of subscription.waiting.splice(0)) inner.send(text);
    },

    /** Answers whether there was one. */
    unsubscribe(socket: WebSocket, spaceId: string): boolean {
      const subscription = lines.get(socket)?.get(spaceId);
      if (!subscription) return false;
      subscription.isOver = true;
      lines.get(socket)?.delete(spaceId);
      subscription.socket?.close(1000, "unsubscribed");
      return true;
    },

    /** A client's frame for a space. */
    forward(socket: WebSocket, spaceId: string, text: string): void {
      const subscription = lines.get(socket)?.get(spaceId);
      if (!subscription) throw new ColloquyError("conflict", "Subscribe to the space before you send it frames");
      if (subscription.socket) {
        subscription.socket.send(text);
        return;
      }
      if (subscription.waiting.length >= maxWaitingFrames) {
        const most = `${maxWaitingFrames} frames wait for the subscription to open (maxWaitingFrames)`;
        throw new ColloquyError("limit_reached", `${most}: send more after its welcome`);
      }
      subscription.waiting.push(text);
    },

    /** The line has ended. */
    end(socket: WebSocket): void {
      for (const spaceId of [...(lines.get(socket)?.keys() ?? [])]) this.unsubscribe(socket, spaceId);
      lines.delete(socket);
    },
  };
};

/** A refusal as a line tells it. */
export const refusalFrame = (error: unknown, spaceId: string | undefined): LineEvent => {
  const { code, message, issues } = error instanceof ColloquyError ? error : new ColloquyError("internal", "Try again");
  return { ...problem(code, message, issues), type: "error", ...(spaceId !== undefined && { spaceId }) };
};
