import fc from "fast-check";
import { expect, test } from "vitest";
import { renderBlock } from "../../../src/agent/context/blocks.ts";
import { eventLine, renderInboxPreview } from "../../../src/agent/context/consciousness/inbox-message.ts";
import { brief, briefJson, excerpt, quoteLines } from "../../../src/agent/context/wording.ts";
import type { InboxData } from "../../../src/agent/records.ts";
import { createScrub } from "../../../src/agent/redaction/forms.ts";
import { quotedPattern } from "../../../src/shared/line-form.ts";

const idPart = "01M87D3WQ2PBQ56SEP3ZJ5F9JB";
const messageId = `msg_01M87D3WPT6QQF6XJPWAXSG1AN${idPart}DFEGSP5E`;

const eventOf = (text: string): InboxData => ({
  type: "space_message",
  spaceName: "Kitchen",
  delivered: {
    message: {
      ...{ id: messageId, seq: 1, spaceId: "spc_1", kind: "text", text, createdAt: "2026-02-18T15:06:55.000Z" },
      sender: { id: "ent_1", name: "Ann", type: "human" },
    },
    root: { id: "msg_1", kind: "person" },
    triggerSource: "mention",
  },
});

/** Each way in which a prompt, a result or a record tells a text. */
const tellings: ((text: string) => string)[] = [
  (text) => text,
  (text) => eventLine(eventOf(text)),
  (text) => renderInboxPreview([eventOf(text)], 1),
  (text) => quoteLines(text),
  (text) => `asked ${brief(text, 80)} in "Kitchen"`,
  (text) => `${excerpt(text, 60)} and so on`,
  (text) => renderBlock({ label: "b", permission: "rw" as never, rendered: text }),
  (text) => briefJson(JSON.stringify({ text, messageId }), 160),
  (text) => `called send_message ${JSON.stringify({ text: `she said: ${text}` })}`,
  (text) =>
    eventLine({
      type: "service",
      serviceName: "s",
      payload: eventLine(eventOf(text)),
      root: { id: "", kind: "service" },
    }),
];

const word = fc.stringMatching(/^[a-z"\\\n é\u200b\u{1F600}]{1,9}$/u);
const filler = fc.array(word, { minLength: 3, maxLength: 30 }).map((words) => words.join(" "));

test("[L4] no stretch of a deleted text is left in any form, and quoted texts stay whole", () => {
  fc.assert(
    fc.property(filler, filler, fc.nat(tellings.length - 1), (before, after, which) => {
      const text = `${before} zanzibarquokka ${after}`.trim();
      const scrub = createScrub({ was: [text], senderNames: ["Ann"], idParts: [idPart] });
      const told = tellings[which]?.(text) ?? "";
      const left = scrub.value({ told, other: "Nothing of it" }, scrub.names(told));
      // A word that is cut off in the middle tells nothing.
      expect(left.told).not.toContain("zanzibarquokka");
      expect(left.other).toBe("Nothing of it");
      const quotes = (line: string): number => line.match(new RegExp(quotedPattern, "g"))?.length ?? 0;
      if (which === 1) expect(quotes(left.told)).toBe(quotes(told));
      if (left.told !== told) expect(scrub.mayHold(JSON.stringify({ told }))).toBe(true);
    }),
    { numRuns: 600 },
  );
});

test("[L4] short words go where they stand whole by their message or sender, and nowhere else", () => {
  const scrub = createScrub({ was: ["hunter2"], senderNames: ["Ann"], idParts: [idPart] });
  expect(scrub.text('["Kitchen"] "Ann": "hunter2"\n["Kitchen"] "Bob": "hunter2"')).toBe(
    '["Kitchen"] "Ann": "[deleted]"\n["Kitchen"] "Bob": "hunter2"',
  );
  const row = { messages: [{ id: messageId, text: "hunter2" }] };
  expect(scrub.value(row, scrub.names(JSON.stringify(row)))).toEqual({
    messages: [{ id: messageId, text: "[deleted]" }],
  });
  expect(scrub.value({ text: "hunter2" })).toEqual({ text: "hunter2" });
});

test("[L4] an edit leaves what the new text says too", () => {
  const scrub = createScrub({
    was: ["The meeting is at seven in the old kitchen"],
    now: "The meeting is at seven in the hall",
  });
  expect(scrub.text('"The meeting is at seven…"')).toBe('"The meeting is at seven…"');
  expect(scrub.text('"The meeting is at seven in the old kitchen"')).toBe('"[edited]"');
  expect(scrub.text("at seven in the old kitchen, she said")).toBe("[edited], she said");
});

test("[L4] ids and names of kinds are no words", () => {
  const scrub = createScrub({ was: [`see ${messageId} calendar_create_event`] });
  const row = { toolCallId: messageId, toolName: "calendar_create_event", text: "calendar_create_event" };
  expect(scrub.value(row)).toEqual({ ...row, text: "[deleted]" });
});

test("[L4] a long value under a key named like one of ours goes, unless it looks like ours", () => {
  const [account, key] = ["DE89370400440532013000", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"];
  const scrub = createScrub({ was: [`the account is ${account} and the passcode 98765432109876543210`, key] });
  const input = { accountId: account, passcode: "98765432109876543210", walletKey: key };
  const left = { accountId: "[deleted]", passcode: "[deleted]", walletKey: "[deleted]" };
  expect(scrub.value([input, { inputHash: key, type: "space_message", id: messageId }])).toEqual([
    left,
    { inputHash: key, type: "space_message", id: messageId },
  ]);
  expect(scrub.text(`"${key}"`)).toBe('"[deleted]"');
});

test("[L4] words in the keys of what a tool answered go too, and names of fields stay", () => {
  const address = "mona.alhaddad@example.com";
  const { value } = createScrub({ was: [address, "tea 4", "sourceSenderName or shipping_address_line_2"] });
  const fields = { sourceSenderName: "Ann", shipping_address_line_2: 1, shipping_address_line_1: 2 };
  const answer = { [address]: { [`of ${address}`]: 3 }, ...fields };
  expect(value(answer)).toEqual({ "[deleted]": { "of [deleted]": 3 }, ...fields });
  expect(value({ "tea 4": 1 }, true)).toEqual({ "[deleted]": 1 });
});

test("[L4] what another said stays, in a reply too and beside words that reach beyond its line", () => {
  const line = (name: string, id: string, text: string) =>
    eventLine({ ...bob(text), delivered: { ...bob(text).delivered, message: { ...message(text, name), id } } });
  const bob = (text: string) => eventOf(text) as Extract<InboxData, { type: "space_message" }>;
  const message = (text: string, name: string) => ({
    ...bob(text).delivered.message,
    ...{ replyTo: messageId, sender: { id: "ent_2", name, type: "human" as const } },
  });
  const said = "I approve the sale of the orchard";
  const told = ["INBOX:", line("Bob", "msg_2", said), line("Cleo", "msg_3", said), "  and so on"].join("\n");
  const whole = (was: string[]) => createScrub({ was, idParts: [idPart], isMessage: true }).text(told, true);
  for (const was of [said, told, told.slice(3, -20), told.slice(40)]) {
    for (const each of told.split("\n").slice(1, 3)) expect(whole([was]).split("\n")).toContain(each);
  }
  expect(whole([`${told} `])).not.toContain("and so on");
});

test("[L4] a question that repeats deleted words loses them before its answer too", () => {
  const said = "my code is four times seven and one";
  const event = { ...eventOf("Yes"), answers: [{ messageId: "msg_9", text: `Ann says ${said}. Right?` }] } as InboxData;
  const left = createScrub({ was: [said], idParts: ["of no message here"], isMessage: true }).text(eventLine(event));
  expect(left).not.toContain("four times seven");
  expect(left).toContain('"Yes"');
});

/** In microseconds of this thread's own time, however busy the machine is. */
const second = 1_000_000;

test.each<[string, string, string, string]>([
  ["one letter", "a".repeat(32_000), `b${"a".repeat(32_000)}`, "a".repeat(512 * 1024)],
  ["two letters", "ab".repeat(16_000), `${"ab".repeat(15_000)}c`, "ab".repeat(256 * 1024)],
  ["a word", "abcdefgh".repeat(4000), `${"abcdefgh".repeat(3999)}z`, "abcdefgh".repeat(64 * 1024)],
  ["lines", `${"-".repeat(79)}\n`.repeat(400), `${"-".repeat(78)}\n`.repeat(400), `${"-".repeat(80)}\n`.repeat(6000)],
  ["backslashes", `${"\\".repeat(32_000)}x`, "y", `${"\\".repeat(32_000)}x`.repeat(16)],
])("[L4] [C13] an edit of what says %s again and again holds nobody up", (_, was, now, text) => {
  const scrub = createScrub({ was: [was], now, idParts: [] });
  const from = process.threadCpuUsage().user;
  scrub.text(text);
  expect(scrub.text(now)).toBe(now);
  expect(process.threadCpuUsage().user - from).toBeLessThan(second);
});

test("[L4] [C13] the deletion of a call that says 10,000 short words holds nobody up", () => {
  const words = Array.from({ length: 10_000 }, (_, index) => `w${index}`);
  const scrub = createScrub({ was: words, senderNames: ["Ann"], idParts: [idPart] });
  const lines = words.map((each) => `["Kitchen"] "Ann": "${each}"`).join("\n");
  const from = process.threadCpuUsage().user;
  scrub.mayHold("Nothing of all that was said stands here. ".repeat(12_000));
  const left = JSON.stringify([scrub.value(words, true), scrub.value(lines)]);
  expect(process.threadCpuUsage().user - from).toBeLessThan(second);
  expect(left.includes('"w77')).toBe(false);
});

test("[L4] what was written before words were said has what it had where they were not said yet", () => {
  const texts = fc.array(filler, { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(texts, fc.nat(5), fc.nat(tellings.length - 1), (was, writtenAt, which) => {
      const words = [...was, ...was.map((each) => each.slice(0, 12))];
      const saidAt = words.map((_, index) => index % 5).toSorted();
      const of = { senderNames: ["Ann"], idParts: [idPart] };
      const told = words.map(tellings[which] ?? String).join("\n");
      const count = saidAt.filter((at) => at <= writtenAt).length;
      const saidBefore = createScrub({ ...of, was: words.slice(0, count), saidAt: saidAt.slice(0, count) });
      const left = createScrub({ ...of, was: words, saidAt }).value([told, ...words], true, writtenAt);
      expect(left).toEqual(saidBefore.value([told, ...words], true));
    }),
    { numRuns: 300 },
  );
});
