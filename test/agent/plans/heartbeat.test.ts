import fc from "fast-check";
import { expect, test } from "vitest";
import { nextHeartbeat } from "../../../src/agent/plans/beats.ts";
import { Heartbeat } from "../../../src/protocol/agent.ts";

const at = (iso: string): number => Date.parse(iso);
const beat = (heartbeat: Heartbeat, last: string, now = last): string =>
  new Date(nextHeartbeat(heartbeat, at(last), at(now))).toISOString();

const office: Heartbeat = { everyMinutes: 120, activeHours: { start: 8, end: 22 }, timezone: "Asia/Riyadh" };
const night: Heartbeat = { everyMinutes: 60, activeHours: { start: 22, end: 6 } };

test("beats keep their distance", () => {
  expect(beat({ everyMinutes: 5 }, "2026-02-18T15:00:00.000Z")).toBe("2026-02-18T15:05:00.000Z");
  expect(beat({ everyMinutes: 5 }, "2026-02-18T15:00:00.000Z", "2026-02-18T15:00:02.000Z")).toBe(
    "2026-02-18T15:05:00.000Z",
  );
});

test("[R6] beats that were missed are not made up for", () => {
  expect(beat({ everyMinutes: 5 }, "2026-02-18T15:00:00.000Z", "2026-02-18T18:02:00.000Z")).toBe(
    "2026-02-18T18:05:00.000Z",
  );
});

test("[R6] a clock that goes back beats nothing twice", () => {
  expect(beat({ everyMinutes: 5 }, "2026-02-18T15:00:00.000Z", "2026-02-18T14:00:00.000Z")).toBe(
    "2026-02-18T15:05:00.000Z",
  );
});

test("outside its hours it waits for where they begin", () => {
  // 21:30 and 23:30 in Riyadh; the next morning at eight.
  expect(beat(office, "2026-02-18T18:30:00.000Z")).toBe("2026-02-19T05:00:00.000Z");
  expect(beat(office, "2026-02-18T16:30:00.000Z")).toBe("2026-02-18T18:30:00.000Z");
});

test("hours may go over midnight", () => {
  expect(beat(night, "2026-02-18T23:30:00.000Z")).toBe("2026-02-19T00:30:00.000Z");
  expect(beat(night, "2026-02-19T05:30:00.000Z")).toBe("2026-02-19T22:00:00.000Z");
});

test("a beat is always ahead, and within its hours", () => {
  const hours = fc.tuple(fc.integer({ min: 0, max: 23 }), fc.integer({ min: 0, max: 24 }));
  fc.assert(
    fc.property(
      fc.integer({ min: 5, max: 3000 }),
      hours.filter(([start, end]) => start !== end % 24),
      fc.constantFrom("UTC", "Asia/Riyadh", "Asia/Kathmandu", "America/New_York"),
      fc.integer({ min: at("2026-05-01T00:00:00Z"), max: at("2026-08-01T00:00:00Z") }),
      fc.integer({ min: 0, max: 3 * 86_400_000 }),
      (everyMinutes, [start, end], timezone, last, late) => {
        const heartbeat = Heartbeat.parse({ everyMinutes, activeHours: { start, end }, timezone });
        const next = nextHeartbeat(heartbeat, last, last + late);
        const format = new Intl.DateTimeFormat("en", { timeZone: timezone, hour: "numeric", hourCycle: "h23" });
        const hour = Number(format.format(next));
        expect(next).toBeGreaterThan(last + late);
        expect(start < end ? hour >= start && hour < end : hour >= start || hour < end).toBe(true);
        expect(next - (last + late)).toBeLessThanOrEqual(everyMinutes * 60_000 + 86_400_000);
      },
    ),
    { numRuns: 300, seed: 4 },
  );
});

test("[S4] a heartbeat without sense is refused", () => {
  for (const heartbeat of [
    { everyMinutes: 4 },
    { everyMinutes: 5, activeHours: { start: 8, end: 8 } },
    { everyMinutes: 5, activeHours: { start: 0, end: 24 } },
    { everyMinutes: 5, activeHours: { start: 24, end: 6 } },
    { everyMinutes: 5, timezone: "Mars/Phobos" },
  ]) {
    expect(Heartbeat.safeParse(heartbeat).success).toBe(false);
  }
});
