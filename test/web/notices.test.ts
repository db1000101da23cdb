import { expect, test } from "vitest";
import type { NotificationEvent } from "../../src/client/index.ts";
import { toShow } from "../../src/web/notifications/notices.ts";
import { asShown } from "../../src/web/notifications/shown.ts";
import { readPushed } from "../../src/web/service-worker/pushed.ts";

const now = Date.parse("2026-11-28T08:00:00Z");
const told = (cursor: number, more: Partial<NotificationEvent> = {}): NotificationEvent => ({
  ...{ type: "notification", cursor, id: `mention msg_${cursor}`, kind: "mention", spaceId: "spc_1" },
  ...{ messageId: `msg_${cursor}`, title: "Ben", body: "@Ada come", at: new Date(now - 1000).toISOString() },
  ...more,
});
const shown = (events: NotificationEvent[], how: { shownUpTo?: number; isHidden?: boolean } = {}): number[] =>
  toShow(events, { shownUpTo: 0, isHidden: true, now, ...how }).map(({ cursor }) => cursor);

test("[I6] a page shows each notification once, and none that is quiet", () => {
  const quiet = told(3, { quiet: true });
  expect(shown([told(1), told(2), quiet])).toEqual([1, 2]);
  expect(shown([told(1), told(2), quiet], { shownUpTo: 1 })).toEqual([2]);
});

test("[I6] a page that is looked at shows no old news", () => {
  const old = told(1, { at: new Date(now - 60_000).toISOString() });
  expect(shown([old, told(2)], { isHidden: false })).toEqual([2]);
  expect(shown([old, told(2)], { isHidden: true })).toEqual([1, 2]);
});

test("[I7] what is shown says who did what, and how much more there is", () => {
  const { title, options } = asShown(told(1), 3);
  expect([title, options.body, options.tag]).toEqual([
    "Ben mentioned you",
    "@Ada come\n3 more in this space",
    "mention msg_1",
  ]);
  expect(asShown(told(1, { kind: "direct" })).title).toBe("Ben");
  expect(asShown(told(1, { kind: "run_failed", body: "" }))).toMatchObject({
    title: "Ben could not answer",
    options: { body: "" },
  });
});

test("[I7] a push that makes no sense, or is of a newer server, shows nothing", () => {
  const { type: _, cursor: __, at: ___, ...news } = told(1);
  const good = { type: "notification", ...news };
  expect(readPushed(JSON.stringify(good))).toEqual(good);
  expect(readPushed(JSON.stringify({ type: "cleared", ids: ["a"] }))).toEqual({ type: "cleared", ids: ["a"] });
  const bad = [
    "",
    "{",
    "null",
    "[]",
    "7",
    '{"type":"cleared"}',
    '{"type":"else"}',
    JSON.stringify({ ...good, body: 7 }),
  ];
  for (const text of bad) expect(readPushed(text), text).toBeUndefined();
});
