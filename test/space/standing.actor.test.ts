import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import fc from "fast-check";
import { beforeAll, expect, test } from "vitest";
import { maxNeeds, maxPreviewCharacters, type NeedsYou, type Standing } from "../../src/protocol/line.ts";
import type { Message } from "../../src/protocol/message.ts";
import type { EntityRef } from "../../src/protocol/rpc.ts";
import { openDatabase } from "../../src/shared/database.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { maxUnreadScan } from "../../src/space/bounds.ts";
import { createLog } from "../../src/space/log/log.ts";
import { createAddressed, shortly } from "../../src/space/people/addressed.ts";
import type { Routing } from "../../src/space/wake.ts";
import { called, entity, type House, house, recordReceivers, said } from "./fixture.ts";

beforeAll(recordReceivers);

type Row = { message: Message; routing: Routing | null; count: number };

/** All messages of a log, as they are stored. */
const logOf = (home: House): Promise<Row[]> =>
  runInDurableObject(home.stub, (_, { storage }) =>
    storage.sql
      .exec("SELECT frame, routing, message_count AS count FROM log WHERE message_id IS NOT NULL ORDER BY seq")
      .toArray()
      .map(({ frame, routing, count }) => ({
        message: (JSON.parse(String(frame)) as { message: Message }).message,
        routing: routing === null ? null : (JSON.parse(String(routing)) as Routing),
        count: Number(count),
      })),
  );

const readCountOf = (home: House, { id }: EntityRef): Promise<number> =>
  runInDurableObject(home.stub, (_, { storage }) =>
    Number(storage.sql.exec("SELECT read_count AS count FROM members WHERE entity_id = ?", id).one().count),
  );

/** A full scan: what the whole log says that is unread, and needs the person. */
const scanned = async (home: House, person: EntityRef) => {
  const [rows, readCount] = [await logOf(home), await readCountOf(home, person)];
  const { items } = unwrap(await home.rpc.list(home.key, { limit: 200 }));
  const others = rows.filter(({ message, routing }) => routing && message.sender.id !== person.id);
  const unread = others.filter(({ count }) => count > readCount);
  const addressed = others.filter(
    ({ routing }) => routing?.mentions.includes(person.id) || routing?.repliedTo === person.id,
  );
  const lastOwn = Math.max(
    0,
    ...rows.filter(({ message }) => message.sender.id === person.id).map(({ count }) => count),
  );
  const isOpen = ({ message, count }: Row): boolean =>
    message.expectsReply && message.sender.type === "agent" ? count > lastOwn : count > readCount;
  const asking = items.filter(({ toolCall }) => {
    if (toolCall?.status !== "requires_action" || !toolCall.awaits) return false;
    const { approvers, answers } = toolCall.awaits;
    return (!approvers || approvers.includes(person.id)) && !answers.some(({ entityId }) => entityId === person.id);
  });
  return {
    unread: unread.length,
    mentions: addressed.filter(({ count }) => count > readCount).length,
    needs: [...asking.map(({ id }) => id), ...addressed.filter(isOpen).map(({ message }) => message.id)].toSorted(),
    preview: items.at(-1)?.deleted ? undefined : items.at(-1)?.id,
  };
};

const told = ({ summary, needsYou }: Standing) => ({
  unread: summary.unread,
  mentions: summary.mentions,
  needs: needsYou.map(({ messageId }: NeedsYou) => messageId).toSorted(),
  preview: summary.preview?.messageId,
});

const kinds = ["post", "mention", "reply", "say", "ask", "call", "answer", "read", "edit", "delete", "sleep"] as const;
const lives = fc.array(fc.tuple(fc.constantFrom(...kinds), fc.nat(9), fc.nat(9)), { minLength: 5, maxLength: 20 });

test("[I1] unread, mentions and what needs a person are what a full scan of the log says", async () => {
  await fc.assert(
    fc.asyncProperty(lives, async (life) => {
      const [ann, ben, robo] = [entity("human", "Ann"), entity("human", "Ben"), entity("agent", "Robo")];
      const home = await house([ann, ben, robo]);
      const people = [ann, ben];
      const pick = <T>(from: T[], index: number): T | undefined => from[index % Math.max(1, from.length)];
      for (const [step, [kind, one, other]] of life.entries()) {
        const texts = (await logOf(home)).map(({ message }) => message).filter(({ deleted }) => !deleted);
        const speaker = pick(people, one) ?? ann;
        const target = pick(
          texts.filter(({ kind: of }) => of === "text"),
          other,
        );
        const own = pick(
          texts.filter(({ sender, kind: of }) => of === "text" && sender.id === speaker.id),
          other,
        );
        const text = `${step}`;
        if (kind === "post") unwrap(await home.rpc.post(home.as(speaker), { text }));
        if (kind === "mention") unwrap(await home.rpc.post(home.as(speaker), { text: `@Ann and @Ben ${text}` }));
        if (kind === "reply" && target) unwrap(await home.rpc.post(home.as(speaker), { text, replyTo: target.id }));
        if (kind === "say") unwrap(await home.rpc.append(said(home, robo, `@Ann ${text}`)));
        if (kind === "ask") unwrap(await home.rpc.append({ ...said(home, robo, text), awaits: [speaker.id] }));
        if (kind === "call") {
          const awaits = { kind: "answer" as const, quorum: 1, expiresAt: "2099-01-01T00:00:00.000Z" };
          const approvers = other % 2 === 0 ? {} : { approvers: [speaker.id] };
          const asked = called(home, robo, text, { status: "requires_action", awaits: { ...awaits, ...approvers } });
          unwrap(await home.rpc.recordToolCall(asked));
        }
        const open = texts.filter(({ kind: of }) => of === "tool_call").map(({ toolCall }) => toolCall?.id ?? "");
        if (kind === "answer" && open.length > 0)
          await home.rpc.answerToolCall(home.as(speaker), pick(open, other) ?? "", { result: "yes" });
        if (kind === "read" && target) await home.rpc.markRead(home.as(speaker), target.id);
        if (kind === "edit" && own) unwrap(await home.rpc.editMessage(home.as(speaker), own.id, `@Ben ${text}`));
        if (kind === "delete" && own) unwrap(await home.rpc.deleteMessage(home.as(speaker), own.id));
        if (kind === "sleep") await evictDurableObject(home.stub);
        for (const person of people) {
          const standing = unwrap(await home.rpc.attend(home.workspaceId, person.id, "mine"));
          expect(told(standing)).toEqual(await scanned(home, person));
        }
      }
    }),
    { numRuns: 8, seed: 18 },
  );
}, 60_000);

test("[I1] [M5] calls that wait for others alone hide none that waits for a person", async () => {
  const [ann, ben, robo] = [entity("human", "Ann"), entity("human", "Ben"), entity("agent", "Robo")];
  const home = await house([ann, ben, robo]);
  const awaits = { kind: "answer" as const, quorum: 2, expiresAt: "2099-01-01T00:00:00.000Z" };
  const ask = async (name: string, approvers?: string[]) =>
    unwrap(
      await home.rpc.recordToolCall(
        called(home, robo, name, { status: "requires_action", awaits: { ...awaits, ...(approvers && { approvers }) } }),
      ),
    );
  const answered = called(home, robo, "answered").toolCallId;
  await ask("answered");
  unwrap(await home.rpc.answerToolCall(home.as(ann), answered, { result: "yes" }));
  for (let count = 0; count < 200; count += 1) await ask(`of Ben ${count}`, [ben.id]);
  const [first, last] = [called(home, robo, "of Ann").messageId, called(home, robo, "of all").messageId];
  await ask("of Ann", [ann.id]);
  await ask("of all");
  const { needsYou } = unwrap(await home.rpc.attend(home.workspaceId, ann.id, "mine"));
  expect(needsYou.map(({ messageId }) => messageId)).toEqual([first, last]);
  expect(unwrap(await home.rpc.asked(home.as(ann))).map(({ id }) => id)).toEqual([first, last]);
  const { needsYou: newest } = unwrap(await home.rpc.attend(home.workspaceId, ben.id, "mine"));
  expect([newest.length, newest.at(-1)?.messageId]).toEqual([maxNeeds, last]);
});

test("[I1] what is new is unread, however many deleted messages lie before it", async () => {
  const [ann, ben] = [entity("human", "Ann"), entity("human", "Ben")];
  const home = await house([ann, ben]);
  await runInDurableObject(home.stub, (_, { storage }) => {
    storage.sql.exec(
      `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
       INSERT INTO log (seq, type, entity_id, message_id, message_count, frame)
       SELECT head.seq + i, 'space.message', ?2, 'msg_' || i, head.message_count + i, json_object('type', 'space.message')
       FROM n, (SELECT seq, message_count FROM log ORDER BY seq DESC LIMIT 1) AS head`,
      maxUnreadScan,
      ben.id,
    );
  });
  await evictDurableObject(home.stub);
  for (const text of ["one", "two"]) unwrap(await home.rpc.post(home.as(ben), { text }));
  const { summary } = unwrap(await home.rpc.attend(home.workspaceId, ann.id, "mine"));
  expect(summary.unread).toBe(2);
  expect(unwrap(await home.rpc.latest(home.as(ann))).unreadCount).toBe(2);
});

test("[B3] of each message that addresses a person who looks its beginning is in memory", async () => {
  const [ann, ben] = [entity("human", "Ann"), entity("human", "Ben")];
  const home = await house([ann, ben]);
  unwrap(await home.rpc.post(home.as(ben), { text: `@Ann ${"x".repeat(30_000)}` }));
  const lengths = await runInDurableObject(home.stub, (_, { storage }) =>
    createAddressed(createLog(openDatabase(storage)))
      .of(ann.id)
      .addressed.map(({ text }) => text.length),
  );
  expect(lengths).toEqual([maxPreviewCharacters]);
});

test("[B3] a preview of surrogate pairs is as short as any other", () => {
  const wide = "\u{1F600}".repeat(maxPreviewCharacters);
  expect([...shortly(wide.repeat(40))]).toHaveLength(maxPreviewCharacters);
  expect([...shortly(`${wide}!`)]).toHaveLength(maxPreviewCharacters);
  expect(shortly(wide)).toBe(wide);
});
