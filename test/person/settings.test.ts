import { expect, test } from "vitest";
import { alerts, changedSettings, defaultSettings } from "../../src/person/settings.ts";
import { ChangeSettings, type NoticeKind, noticeKinds, type Settings } from "../../src/protocol/notifications.ts";

const at = Date.parse;
const noon = { now: at("2026-11-28T12:00:00Z"), isLookedAt: false };
const looking = { ...noon, isLookedAt: true };
const spaceId = "spc_one";
const withSpace = (own: Settings["spaces"][string]): Settings => ({ ...defaultSettings, spaces: { [spaceId]: own } });
const withKind = (kind: NoticeKind, alerting: "always" | "when_away" | "never"): Settings => ({
  ...defaultSettings,
  notifications: { ...defaultSettings.notifications, [kind]: alerting },
});

test.for(noticeKinds)("[I6] %s alerts who is away, always or never, as its setting says", (kind) => {
  const one = { kind, spaceId };
  expect([alerts(defaultSettings, one, noon), alerts(defaultSettings, one, looking)]).toEqual([true, false]);
  expect([alerts(withKind(kind, "always"), one, noon), alerts(withKind(kind, "always"), one, looking)]).toEqual([
    true,
    true,
  ]);
  expect([alerts(withKind(kind, "never"), one, noon), alerts(withKind(kind, "never"), one, looking)]).toEqual([
    false,
    false,
  ]);
  // Another kind's setting is no concern of it.
  const other = noticeKinds.find((each) => each !== kind) ?? kind;
  expect(alerts(withKind(other, "never"), one, noon)).toBe(true);
});

test.for(noticeKinds)("[I6] a space's own setting of %s counts in place of the person's", (kind) => {
  const one = { kind, spaceId };
  expect(alerts(withSpace({ notifications: { [kind]: "never" } }), one, noon)).toBe(false);
  expect(alerts(withSpace({ notifications: { [kind]: "always" } }), one, looking)).toBe(true);
  expect(alerts(withSpace({ notifications: { [kind]: "never" } }), { kind, spaceId: "spc_two" }, noon)).toBe(true);
});

test.for(noticeKinds)("[I6] of a muted space %s alerts only where it needs the person", (kind) => {
  const one = { kind, spaceId };
  expect(alerts(withSpace({ muted: true }), one, noon)).toBe(kind === "needs_you");
  const loud = withSpace({ muted: true, notifications: { [kind]: "always" } });
  expect(alerts(loud, one, noon)).toBe(kind === "needs_you");
  expect(alerts(withSpace({ muted: true, notifications: { needs_you: "never" } }), one, noon)).toBe(false);
});

/** The clocks of Berlin go from 2 to 3 on 2026-03-29, and from 3 to 2 on 2026-10-25. */
const berlin = { from: "22:00", to: "07:00", zone: "Europe/Berlin" };
test.for([
  ["in the evening before they begin", berlin, "2026-11-28T20:59:59Z", true],
  ["as they begin", berlin, "2026-11-28T21:00:00Z", false],
  ["at midnight", berlin, "2026-11-28T23:00:00Z", false],
  ["in the night", berlin, "2026-11-29T02:00:00Z", false],
  ["just before they end", berlin, "2026-11-29T05:59:59Z", false],
  ["as they end", berlin, "2026-11-29T06:00:00Z", true],
  ["in summer, by the clocks of summer", berlin, "2026-07-01T05:30:00Z", true],
  ["in winter, at the same time of the world", berlin, "2026-12-01T05:30:00Z", false],
  ["as they end on the day that clocks go ahead", berlin, "2026-03-29T05:00:00Z", true],
  ["an hour before that", berlin, "2026-03-29T04:59:00Z", false],
  ["as they end on the day that clocks go back", berlin, "2026-10-25T06:00:00Z", true],
  ["within a day", { from: "12:00", to: "13:30", zone: "Asia/Kolkata" }, "2026-11-28T07:59:00Z", false],
  ["after it", { from: "12:00", to: "13:30", zone: "Asia/Kolkata" }, "2026-11-28T08:00:00Z", true],
  ["from midnight on", { from: "00:00", to: "06:00", zone: "UTC" }, "2026-11-28T00:00:00Z", false],
  ["up to midnight", { from: "18:00", to: "00:00", zone: "UTC" }, "2026-11-28T23:59:59Z", false],
  ["at their end at midnight", { from: "18:00", to: "00:00", zone: "UTC" }, "2026-11-29T00:00:00Z", true],
] as const)("[I6] quiet hours %s", ([, quietHours, now, expected]) => {
  const settings: Settings = { ...withKind("mention", "always"), quietHours };
  const one = { kind: "mention" as const, spaceId };
  expect(alerts(settings, one, { now: at(now), isLookedAt: false })).toBe(expected);
});

test("[I6] in a change, what is left out stays and null takes away", () => {
  const first = changedSettings(defaultSettings, {
    notifications: { mention: "always" },
    spaces: { spc_one: { muted: true, notifications: { reply: "never", direct: "never" } } },
    quietHours: berlin,
  });
  expect(first).toEqual({
    notifications: { ...defaultSettings.notifications, mention: "always" },
    spaces: { spc_one: { muted: true, notifications: { reply: "never", direct: "never" } } },
    quietHours: berlin,
  });
  const second = changedSettings(first, { spaces: { spc_one: { notifications: { reply: null } } } });
  expect(second).toEqual({ ...first, spaces: { spc_one: { muted: true, notifications: { direct: "never" } } } });
  const third = changedSettings(second, { spaces: { spc_one: { muted: false } }, quietHours: null });
  expect(third).toEqual({ ...first, spaces: { spc_one: { notifications: { direct: "never" } } }, quietHours: null });
  expect(changedSettings(third, { spaces: { spc_one: { notifications: null } } }).spaces).toEqual({});
  expect(changedSettings(first, { spaces: { spc_one: null } }).spaces).toEqual({});
  expect(changedSettings(first, {})).toEqual(first);
});

test("[B3] a person has settings of 500 spaces at most", () => {
  const spaces = Object.fromEntries(Array.from({ length: 501 }, (_, n) => [`spc_${n}`, { muted: true }]));
  expect(() => changedSettings(defaultSettings, { spaces })).toThrow("maxSpaceSettings");
});

test("[I6] a zone that nobody knows and hours of no length are refused by name", () => {
  const refusal = (quietHours: object): string => ChangeSettings.safeParse({ quietHours }).error?.message ?? "";
  expect(refusal({ ...berlin, zone: "Europe/Atlantis" })).toContain("IANA time zone");
  expect(refusal({ ...berlin, to: "22:00" })).toContain("must not be the same as from");
  expect(refusal({ ...berlin, from: "24:00" })).toContain("must be a time of day");
});
