import fc from "fast-check";
import { expect, test } from "vitest";
import { initialSpaceState, type Message, reduce, type SpaceFrame, type SpaceState } from "../../src/client/index.ts";
import type { DurableEvent } from "../../src/protocol/events.ts";
import {
  called,
  delta,
  husam,
  loaded,
  message,
  nova,
  said,
  snapshot,
  spaceId,
  start,
  streamId,
  updated,
  welcome,
} from "./frames.ts";

/**
 * A small server: a log, running streams, and a connection to one client that drops and comes back as the generated
 * story says. After any story the client must have the server's state.
 */
type Step =
  | { do: "post" }
  | { do: "send" }
  | { do: "start" }
  | { do: "delta"; text: string }
  | { do: "say" }
  | { do: "call" }
  | { do: "update"; back: number }
  | { do: "edit"; back: number }
  | { do: "delete"; back: number }
  | { do: "fail" }
  | { do: "break" }
  | { do: "reconnect"; replayed: number }
  | { do: "repeat"; back: number }
  | { do: "load"; limit: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constant("post" as const) }),
  fc.record({ do: fc.constant("send" as const) }),
  fc.record({ do: fc.constant("start" as const) }),
  { weight: 3, arbitrary: fc.record({ do: fc.constant("delta" as const), text: fc.string({ maxLength: 4 }) }) },
  fc.record({ do: fc.constant("say" as const) }),
  fc.record({ do: fc.constant("call" as const) }),
  { weight: 2, arbitrary: fc.record({ do: fc.constant("update" as const), back: fc.nat(2) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("edit" as const), back: fc.nat(4) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("delete" as const), back: fc.nat(4) }) },
  fc.record({ do: fc.constant("fail" as const) }),
  fc.record({ do: fc.constant("break" as const) }),
  { weight: 2, arbitrary: fc.record({ do: fc.constant("reconnect" as const), replayed: fc.nat(6) }) },
  fc.record({ do: fc.constant("repeat" as const), back: fc.nat(5) }),
  fc.record({ do: fc.constant("load" as const), limit: fc.integer({ min: 1, max: 8 }) }),
);

const play = (steps: Step[]) => {
  const log: DurableEvent[] = [];
  const streams = new Map<string, string>();
  const posted: string[] = [];
  let sentCount = 0;
  let streamCount = 0;
  let isUp = true;
  let state: SpaceState = initialSpaceState(spaceId);

  const show = (frame: SpaceFrame): void => {
    state = reduce(state, frame, 0);
    const order = state.messages.map((one) => one.seq);
    expect(order).toEqual([...new Set(order)].sort((one, other) => one - other));
  };
  const tell = (frame: SpaceFrame): void => {
    if (isUp) show(frame);
  };
  const append = (event: DurableEvent): void => {
    log.push(event);
    tell(event);
  };
  const store = (clientKey: string): void => {
    const known = log.find((event) => event.type === "space.message" && event.message.clientKey === clientKey);
    if (known) tell(known);
    else append(said(log.length + 1, { sender: husam, clientKey }));
  };
  /** Reconnects. The connection may drop again after `replayed` events; the next reconnect must repair that. */
  const reconnect = (replayed: number): void => {
    const cursor = state.cursor;
    isUp = true;
    show(welcome(log.length, { streams: [...streams].map(([name, text]) => snapshot(name, text)) }));
    for (const [index, event] of log.slice(cursor ?? log.length).entries()) {
      if (index >= replayed) {
        isUp = false;
        return;
      }
      show(event);
    }
    for (const outgoing of state.outgoing) store(outgoing.clientKey);
  };
  const newestStream = (): string | undefined => [...streams.keys()].at(-1);
  const messages = () => {
    const now = new Map<number, Message>();
    for (const event of log) {
      if ("message" in event) now.set(event.message.seq, event.message);
    }
    return [...now.values()];
  };
  /** As the space does: the message's own event tells it as it is from then on, and older changes tell no words. */
  const change = (type: "message.updated" | "message.deleted", back: number, changed: Partial<Message>): void => {
    const known = messages().at(-1 - back);
    if (!known || known.deleted) return;
    const { text: _, toolCall: _call, ...bare } = known;
    const now: Message = { ...bare, ...changed };
    for (const [index, event] of log.entries()) {
      if (!("message" in event) || event.message.id !== now.id) continue;
      const { text: _, ...wordless } = now;
      log[index] = { ...event, message: event.type === "message.updated" ? wordless : now };
    }
    append({ type, cursor: log.length + 1, message: now });
  };

  const perform = (one: Step): void => {
    const name = newestStream();
    if (one.do === "post") append(said(log.length + 1));
    if (one.do === "send") {
      const clientKey = `key ${++sentCount}`;
      posted.push(clientKey);
      show({ type: "local.send", clientKey, text: clientKey, createdAt: message(1).createdAt });
      if (isUp) store(clientKey);
    }
    if (one.do === "start") {
      const started = `stream ${++streamCount}`;
      streams.set(started, "");
      tell(start(started));
    }
    if (one.do === "delta" && name) {
      streams.set(name, streams.get(name) + one.text);
      tell(delta(name, one.text));
    }
    if (one.do === "say" && name) {
      streams.delete(name);
      append(said(log.length + 1, { sender: nova, streamId: streamId(name) }));
    }
    if (one.do === "call") append(said(log.length + 1, called(0)));
    if (one.do === "update") {
      const call = messages().findLast(({ kind }, index, all) => kind === "tool_call" && index < all.length - one.back);
      if (call) append(updated(log.length + 1, { ...call, ...called(log.length) }));
    }
    if (one.do === "edit") change("message.updated", one.back, { text: `edited ${log.length}` });
    if (one.do === "delete")
      change("message.deleted", one.back, { kind: "text", deleted: { at: message(1).createdAt } });
    if (one.do === "fail" && name) {
      streams.delete(name);
      tell({ type: "tool-call.error", streamId: streamId(name), code: "interrupted", message: "…" });
    }
    if (one.do === "break") isUp = false;
    if (one.do === "reconnect") reconnect(one.replayed);
    if (one.do === "repeat") {
      const event = log[Math.min(state.cursor ?? 0, log.length) - 1 - one.back];
      if (event) tell(event);
    }
    if (one.do === "load" && isUp) show(loaded(messages().slice(-one.limit), messages().length > one.limit));
  };

  show(welcome(0));
  for (const one of steps) perform(one);
  reconnect(Number.POSITIVE_INFINITY);
  return { state, log, streams, posted, messages: messages() };
};

test("[D1] [D3] [D4] after any drops and repeats the client ends with the server's state", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const { state, log, streams, posted, messages } = play(steps);
      expect(state.messages).toEqual(messages);
      expect(state.changing).toEqual({});
      expect(state.cursor).toBe(log.length);
      expect(state.streams.map((stream) => stream.text)).toEqual([...streams.values()]);
      expect(state.outgoing).toEqual([]);
      const keys = messages.flatMap((one) => one.clientKey ?? []);
      expect(keys.toSorted()).toEqual(posted.toSorted());
    }),
    { numRuns: 500 },
  );
});
