import fc from "fast-check";
import { expect, test } from "vitest";
import { compartmentId, createIds } from "../../src/shared/ids.ts";
import { maxBatchMessages } from "../../src/space/bounds.ts";
import { type AgentBatch, batchFor } from "../../src/space/delivery/agent-batch.ts";
import { indexBatch } from "../../src/space/delivery/index-follower.ts";
import type { LogRow } from "../../src/space/log/log.ts";

const ids = createIds("a secret of at least thirty-two chars");
const spaceId = ids.mint("spc");
const [me, other] = [ids.mint("ent"), ids.mint("ent")];
const compartment = compartmentId(ids, me, spaceId);
const at = "2026-02-18T15:06:55.000Z";

const others = ["counted", "others", "read", "renamed", "joined", "left"] as const;
const everyKind = ["said", "mine", "let out", "decided", ...others] as const;
type Kind = (typeof everyKind)[number];

const rowFor = (kind: Kind, seq: number): LogRow => {
  const none = { messageId: null, routing: null, outcome: null, read: null, changedSeq: null, was: null };
  const row = { seq, messageCount: 0, ...none, frame: "{}" };
  if (kind === "said" || kind === "mine" || kind === "let out") {
    const sender = { id: kind === "said" ? other : me, name: "N", type: "agent" };
    const id = ids.mintOwned("msg", spaceId);
    const message = { id, seq, spaceId, kind: "text", sender, text: `${seq}`, createdAt: at };
    const routing: LogRow["routing"] = {
      root: { id: message.id, kind: "person" },
      wakePolicy: "every_message",
      mentions: [],
      pair: false,
      ...(kind === "let out" && { own: "let_out" }),
    };
    const frame = JSON.stringify({ type: "space.message", cursor: seq, message });
    return { ...row, type: "space.message", entityId: sender.id, messageId: message.id, routing, frame };
  }
  if (kind === "decided" || kind === "counted" || kind === "others") {
    const owner = kind === "others" ? other : me;
    const message = {
      id: ids.mintOwned("msg", spaceId),
      seq: 1,
      spaceId,
      kind: "tool_call",
      sender: { id: owner, name: "N", type: "agent" },
      toolCall: { id: ids.mintOwned("tc", owner), name: "deploy", input: {}, output: seq, status: "complete" },
      createdAt: at,
    };
    const frame = JSON.stringify({ type: "space.message.updated", cursor: seq, message });
    const outcome = kind === "counted" ? null : ("answered" as const);
    return { ...row, type: "space.message.updated", entityId: owner, outcome, frame };
  }
  if (kind === "joined") return { ...row, type: "member.joined", entityId: me };
  if (kind === "left") return { ...row, type: "member.left", entityId: me };
  return { ...row, type: kind === "read" ? "member.read" : "member.renamed", entityId: other };
};

/** A log in which the subscriber comes and goes as one can: it joins when out, and leaves when in. */
const logOf = (kinds: Kind[]): LogRow[] => {
  const rows = [rowFor("joined", 1)];
  let inside = true;
  for (const kind of kinds) {
    const fits = kind === "joined" ? !inside : kind === "left" || kind === "mine" || kind === "let out" ? inside : true;
    if (!fits) continue;
    if (kind === "joined" || kind === "left") inside = !inside;
    rows.push(rowFor(kind, rows.length + 1));
  }
  return rows;
};

type Place = Parameters<typeof batchFor>[0];
const openMind: Place = { id: me, kind: "agent", cursor: 0, inside: false };

/** All deliveries of a log that is walked `limit` events at a time. */
const walk = (rows: LogRow[], limit: number, begin = openMind, openUpTo?: number): AgentBatch[] => {
  const batches: AgentBatch[] = [];
  let place = begin;
  const rest = (): LogRow[] => rows.filter(({ seq }) => seq > place.cursor).slice(0, limit);
  for (let next = rest(); next.length > 0; next = rest()) {
    const batch = batchFor(place, next, new Map(), openUpTo);
    batches.push(batch);
    place = { ...place, cursor: batch.cursor, inside: batch.inside };
  }
  return batches;
};

const kinds = fc.array(fc.constantFrom(...everyKind), { maxLength: 60 });

test("[D2] a log cut anywhere gives an agent the messages of its stays once, in order", () => {
  fc.assert(
    fc.property(kinds, fc.integer({ min: 1, max: 20 }), (events, limit) => {
      const rows = logOf(events);
      let inside = false;
      const expected: string[] = [];
      const answers: number[] = [];
      for (const row of rows) {
        if (row.entityId === me && row.type === "member.joined") inside = true;
        if (row.entityId === me && row.type === "member.left") inside = false;
        const isNews = row.entityId !== me || row.routing?.own !== undefined;
        if (inside && row.type === "space.message" && isNews) expected.push(`${row.seq}`);
        if (inside && row.outcome && row.entityId === me) answers.push(row.seq);
      }
      const batches = walk(rows, limit);
      expect(batches.flatMap(({ messages }) => messages.map(({ message }) => message.text))).toEqual(expected);
      expect(batches.flatMap((batch) => batch.answers)).toMatchObject(
        answers.map((seq) => ({ seq, outcome: "answered", output: seq })),
      );
      const leavings = rows.filter((row) => row.type === "member.left").length;
      expect(batches.filter(({ left }) => left)).toHaveLength(leavings);
    }),
  );
});

/** The content that is told, wherever it is cut into batches. */
const toldOf = (batches: AgentBatch[]) => ({
  texts: batches.flatMap(({ messages }) => messages.map(({ message }) => message.text)),
  answers: batches.flatMap((batch) => batch.answers.map(({ toolCallId, output }) => ({ toolCallId, output }))),
  leavings: batches.filter(({ left }) => left).length,
});

test("[C17] [D2] an open mind is told what comes before the switch, its compartment the rest", () => {
  fc.assert(
    fc.property(kinds, fc.integer({ min: 1, max: 20 }), fc.nat(60), fc.nat(60), (events, limit, at, from) => {
      const rows = logOf(events);
      const openUpTo = Math.min(at, rows.length);
      const cursor = Math.min(from, openUpTo);
      const own = rows.slice(0, cursor).filter(({ entityId, type }) => entityId === me && type !== "space.message");
      const inside = own.findLast(({ type }) => type.startsWith("member."))?.type === "member.joined";
      const place = { ...openMind, id: compartment, compartmentOf: me, cursor, inside };
      const [open, kept] = [toldOf(walk(rows, limit, openMind, openUpTo)), toldOf(walk(rows, limit, place, openUpTo))];
      const all = toldOf(walk(rows, limit));
      expect([...open.texts, ...kept.texts]).toEqual(all.texts);
      expect(open.texts.every((text) => Number(text) <= openUpTo)).toBe(true);
      expect(kept.texts.every((text) => Number(text) > openUpTo)).toBe(true);
      expect([...open.answers, ...kept.answers]).toEqual(all.answers);
      expect(open.answers.every(({ output }) => Number(output) <= openUpTo)).toBe(true);
      expect(kept.answers.every(({ output }) => Number(output) > openUpTo)).toBe(true);
      expect(open.leavings).toBe(all.leavings);
    }),
  );
});

test("[C17] an open mind that hears late is told no words of an edit since the switch", () => {
  const edited = { ...rowFor("said", 1), changedSeq: 3 };
  expect(batchFor({ ...openMind, inside: true }, [edited], new Map(), 2)).toMatchObject({ messages: [], cursor: 1 });
});

test("[C17] an open mind gets the same deliveries whatever a confidential space says", () => {
  fc.assert(
    fc.property(kinds, fc.nat(60), (events, at) => {
      const rows = logOf(events);
      const openUpTo = Math.min(at, rows.length);
      const isSecret = ({ seq, type, outcome }: LogRow): boolean =>
        seq > openUpTo && (type === "space.message" || outcome !== null);
      const told = (log: LogRow[]) =>
        walk(log, 100, openMind, openUpTo)
          .filter(({ pending }) => pending)
          .map(({ cursor, ...batch }) => batch);
      expect(told(rows)).toEqual(told(rows.filter((row) => !isSecret(row))));
    }),
  );
});

test("[C21] words of its own that another mind said are told to an agent, and never wake it", () => {
  const [message] = walk(logOf(["said", "let out"]), 9).flatMap(({ messages }) => messages.slice(1));
  expect(message).toMatchObject({ message: { sender: { id: me } }, triggerSource: "none", own: "let_out" });
});

test("own messages, read marks and what is not decided alone are no delivery", () => {
  const [joined, ...rest] = walk(logOf(["mine", "read", "counted", "others"]), 1);
  expect(joined?.pending).toBe(true);
  expect(rest.map(({ pending }) => pending)).toEqual([false, false, false, false]);
});

test("[B3] a delivery carries a bounded number of messages", () => {
  const rows = logOf(Array.from({ length: 250 }, () => "said"));
  expect(walk(rows, 1000).map(({ messages }) => messages.length)).toEqual([maxBatchMessages, maxBatchMessages, 50]);
});

test("the workspace's index is told of changes only", () => {
  expect(indexBatch({ cursor: 0 }, [rowFor("said", 1), rowFor("read", 2)])).toMatchObject({
    pending: false,
    cursor: 2,
  });
  expect(indexBatch({ cursor: 0 }, [rowFor("said", 1), rowFor("renamed", 2)])).toMatchObject({ pending: true });
});
