import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { firstDueAt, nextCronTime, type PlanTimes } from "../../../src/agent/plans/recurrence.ts";
import { ColloquyError } from "../../../src/shared/errors.ts";
import { refusal } from "../../support/refusal.ts";

const at = (iso: string): number => Date.parse(iso);
const now = at("2026-02-18T15:07:00.000Z");
const due = (times: PlanTimes, from = now): string => new Date(firstDueAt(times, from)).toISOString();
const next = (cron: string, timezone: string, after: string): string =>
  new Date(nextCronTime(cron, timezone, at(after))).toISOString();

describe("after a while", () => {
  test.each([
    ["2 hours", "2026-02-18T17:07:00.000Z"],
    ["in 2 hours", "2026-02-18T17:07:00.000Z"],
    ["3 days", "2026-02-21T15:07:00.000Z"],
    ["1 hour and 30 minutes", "2026-02-18T16:37:00.000Z"],
    ["1h30m", "2026-02-18T16:37:00.000Z"],
    ["1 day, 2 hours", "2026-02-19T17:07:00.000Z"],
    ["an hour", "2026-02-18T16:07:00.000Z"],
    ["in a week", "2026-02-25T15:07:00.000Z"],
    ["one minute", "2026-02-18T15:08:00.000Z"],
    ["1.5 hours", "2026-02-18T16:37:00.000Z"],
    ["90 Seconds", "2026-02-18T15:08:30.000Z"],
  ])("%s", (runAfter, expected) => {
    expect(due({ runAfter })).toBe(expected);
  });

  test.each([
    ["30", "cannot be read"],
    ["soon", "cannot be read"],
    ["2 hours tomorrow", "cannot be read"],
    ["-2 hours", "cannot be read"],
    ["2 fortnights", "cannot be read"],
    ["1,5 hours", "cannot be read"],
    ["", "cannot be read"],
    ["0 minutes", "a second or more"],
    ["20 ms", "a second or more"],
    ["11 years", "ten years"],
    ["9999999999999999999999 hours", "ten years"],
  ])("%j is refused, and said why", (runAfter, why) => {
    expect(refusal(() => due({ runAfter }))).toMatchObject({
      code: "invalid_time",
      message: expect.stringContaining(why),
    });
  });
});

describe("at a time", () => {
  test.each([
    [{ scheduledAt: "2026-02-18T15:07:00.001Z" }, "2026-02-18T15:07:00.001Z"],
    [{ scheduledAt: "2026-02-19T09:00:00+03:00" }, "2026-02-19T06:00:00.000Z"],
    [{ scheduledAt: "2026-02-19T09:00:00", timezone: "Asia/Riyadh" }, "2026-02-19T06:00:00.000Z"],
    [{ scheduledAt: "2026-02-19T09:00:00" }, "2026-02-19T09:00:00.000Z"],
    [{ scheduledAt: "2026-02-19T09:00", timezone: "Asia/Riyadh" }, "2026-02-19T06:00:00.000Z"],
    [{ scheduledAt: "2026-02-19T09:00:00.250", timezone: "Asia/Riyadh" }, "2026-02-19T06:00:00.000Z"],
    // The clocks went from 2:00 to 3:00: half past two was half past three.
    [{ scheduledAt: "2026-03-29T02:30:00", timezone: "Europe/Berlin" }, "2026-03-29T01:30:00.000Z"],
    // They went from 3:00 to 2:00: the first half past two.
    [{ scheduledAt: "2026-10-25T02:30:00", timezone: "Europe/Berlin" }, "2026-10-25T00:30:00.000Z"],
  ])("%j", (times, expected) => {
    expect(due(times)).toBe(expected);
  });

  test.each([
    ["2026-02-18T15:07:00Z", "is past; now it is 2026-02-18T15:07:00.000Z"],
    ["2026-02-18T15:07:00+03:00", "is past"],
    ["2036-12-18T15:07:00Z", "within ten years"],
    ["2026-02-30T15:07:00Z", "is no time"],
    ["1965-02-01T09:00:00", "is past"],
    ["tomorrow", "is no time"],
  ])("%s is refused, and said why", (scheduledAt, why) => {
    expect(refusal(() => due({ scheduledAt })).message).toContain(why);
  });
});

describe("again and again", () => {
  test.each([
    ["0 9 * * *", "Asia/Riyadh", "2026-02-18T05:59:59.999Z", "2026-02-18T06:00:00.000Z"],
    ["0 9 * * *", "Asia/Riyadh", "2026-02-18T06:00:00.000Z", "2026-02-19T06:00:00.000Z"],
    ["0 9 * * MON-FRI", "UTC", "2026-02-20T09:00:00.000Z", "2026-02-23T09:00:00.000Z"],
    ["@daily", "UTC", "2026-02-18T15:07:00.000Z", "2026-02-19T00:00:00.000Z"],
    ["0 0 29 2 *", "UTC", "2026-02-18T15:07:00.000Z", "2028-02-29T00:00:00.000Z"],
    // A time of day that the change of clocks leaves out: the first moment after it.
    ["30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00.000Z", "2026-03-29T01:00:00.000Z"],
    ["30 2,14 * * *", "Europe/Berlin", "2026-03-28T20:00:00.000Z", "2026-03-29T01:00:00.000Z"],
    ["0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00:00.000Z", "2018-11-04T03:00:00.000Z"],
    // One that comes twice: the first time only.
    ["30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00.000Z", "2026-10-25T00:30:00.000Z"],
    ["30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00.000Z", "2026-10-26T01:30:00.000Z"],
    // A schedule by elapsed time goes on through both.
    ["*/30 * * * *", "Europe/Berlin", "2026-10-25T00:30:00.000Z", "2026-10-25T01:00:00.000Z"],
    // A whole day that a place left out.
    ["0 0 30 12 *", "Pacific/Apia", "2011-12-29T00:00:00.000Z", "2012-12-29T10:00:00.000Z"],
  ])("%s in %s after %s", (cron, timezone, after, expected) => {
    expect(next(cron, timezone, after)).toBe(expected);
  });

  test.each([
    [{ cron: "0 0 31 2 *" }, "never comes"],
    [{ cron: "0 0 31 4,6,9,11 *" }, "never comes"],
    [{ cron: "61 * * * *" }, "Invalid value for minute: 61"],
    [{ cron: "* * * *" }, "cannot be read"],
    [{ cron: "@reboot" }, "cannot be read"],
    [{ cron: "every day at nine o'clock" }, "cannot be read"],
    [{ cron: "nine" }, "cannot be read"],
    [{ cron: "0 0 9 * * *" }, "finer than a minute"],
    [{ cron: "? 9 * * *" }, "write * for any"],
    [{ cron: "0 9 * * *", timezone: "Mars/Phobos" }, 'there is no time zone "Mars/Phobos"'],
    [{ cron: "0 9 * * *", timezone: "+03:00" }, "there is no time zone"],
    [{ runAfter: "2 hours", timezone: "" }, "there is no time zone"],
    [{ runAfter: "2 hours", cron: "0 9 * * *" }, "give only one of runAfter and cron"],
    [{ timezone: "UTC" }, "say when"],
    [{}, "say when"],
  ])("%j is refused, and said why", (times, why) => {
    const error = refusal(() => due(times));
    expect(error).toMatchObject({ code: "invalid_time", message: expect.stringContaining(why) });
    expect(error.issues).toHaveLength(1);
  });
});

const zones = ["UTC", "Asia/Riyadh", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe"];
const minuteMs = 60_000;

/** Fields of a cron as numbers, so that a test can tell by itself whether a minute is one of its times. */
const field = (low: number, high: number) =>
  fc.option(fc.uniqueArray(fc.integer({ min: low, max: high }), { minLength: 1, maxLength: 3 }), { nil: null });
const written = (values: number[] | null): string => (values === null ? "*" : values.join(","));

/** How far a zone's clocks are ahead of UTC, in milliseconds. */
const offsetOf = (zone: string, time: number): number =>
  at(`${new Date(time).toLocaleString("sv", { timeZone: zone }).replace(" ", "T")}Z`) - Math.floor(time / 1000) * 1000;

describe("properties", () => {
  test("the next time of a cron is one of its times, and there is none before it", () => {
    // July: no clock changes in any of these zones, so that elapsed and local time agree.
    const july = { min: at("2026-07-02T00:00:00Z"), max: at("2026-07-20T00:00:00Z") };
    fc.assert(
      fc.property(
        field(0, 59),
        field(0, 23),
        field(0, 6),
        fc.constantFrom(...zones),
        fc.integer(july),
        (minutes, hours, weekdays, zone, after) => {
          const cron = `${written(minutes)} ${written(hours)} * * ${written(weekdays)}`;
          const found = nextCronTime(cron, zone, after);
          const offset = offsetOf(zone, after);
          const fits = (time: number): boolean => {
            const local = new Date(time + offset);
            const isIn = (values: number[] | null, value: number) => values === null || values.includes(value);
            return (
              isIn(minutes, local.getUTCMinutes()) &&
              isIn(hours, local.getUTCHours()) &&
              isIn(weekdays, local.getUTCDay())
            );
          };
          expect(found).toBeGreaterThan(after);
          expect(found % minuteMs).toBe(0);
          expect(fits(found)).toBe(true);
          const earlier = Array.from(
            { length: Math.ceil((found - after) / minuteMs) - 1 },
            (_, i) => found - (i + 1) * minuteMs,
          );
          expect(earlier.filter(fits)).toEqual([]);
        },
      ),
      { numRuns: 300, seed: 4 },
    );
  });

  test("[R6] a daily time comes once a day through every change of clocks", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 59 }),
        fc.integer({ min: 0, max: 23 }),
        fc.constantFrom(...zones),
        fc.constantFrom(...["2026-03-05", "2026-03-26", "2026-04-02", "2026-10-01", "2026-10-22", "2026-10-29"]),
        (minute, hour, zone, day) => {
          const days = new Intl.DateTimeFormat("sv", { timeZone: zone });
          let time = at(`${day}T12:00:00Z`);
          const seen: string[] = [];
          for (let count = 0; count < 7; count += 1) {
            time = nextCronTime(`${minute} ${hour} * * *`, zone, time);
            seen.push(days.format(time));
          }
          const expected = seen.map((_, index) => new Date(at(`${seen[0]}T00:00:00Z`) + index * 86_400_000));
          expect(seen).toEqual(expected.map((date) => date.toISOString().slice(0, 10)));
        },
      ),
      { numRuns: 300, seed: 4 },
    );
  });

  test("[S4] whatever is written as a time is a time ahead or a refusal that says why", () => {
    const cronish = fc
      .array(fc.constantFrom(..."0123456789*/,-LW#? MONFEB@".split(""), "60", "31", " "), { maxLength: 16 })
      .map((characters) => characters.join(""));
    const hostile = fc.oneof(cronish, fc.string({ unit: "binary", maxLength: 20 }));
    fc.assert(
      fc.property(
        fc.constantFrom("runAfter" as const, "cron" as const, "scheduledAt" as const),
        hostile,
        fc.option(fc.oneof(fc.constantFrom(...zones), fc.string({ maxLength: 12 })), { nil: undefined }),
        (way, text, timezone) => {
          try {
            expect(firstDueAt({ [way]: text, timezone }, now)).toBeGreaterThan(now);
          } catch (error) {
            if (!(error instanceof ColloquyError)) throw error;
            expect(error.code).toBe("invalid_time");
          }
        },
      ),
      { numRuns: 1500, seed: 4 },
    );
  });
});
