import fc from "fast-check";
import { expect, test } from "vitest";
import { nextHeartbeat } from "../../../src/agent/plans/beats.ts";
import { Heartbeat } from "../../../src/protocol/agent.ts";

const at = (iso: string): number => Date.parse(iso);
const often: Heartbeat = { everyMinutes: 5 };
const office: Heartbeat = { everyMinutes: 120, activeHours: { start: 8, end: 22 }, timezone: "Asia/Riyadh" };
const night: Heartbeat = { everyMinutes: 60, activeHours: { start: 22, end: 6 } };

test.each([
  ["keeps its distance", often, "18T15:00:00", "18T15:00:00", "18T15:05:00"],
  ["keeps its distance where the last one was late", often, "18T15:00:00", "18T15:00:02", "18T15:05:00"],
  ["makes up for none that was missed", often, "18T15:00:00", "18T18:02:00", "18T18:05:00"],
  ["does not come twice where the clock goes back", often, "18T15:00:00", "18T14:00:00", "18T15:05:00"],
  // 21:30 in Riyadh; the next morning at eight.
  ["outside its hours waits for where they begin", office, "18T18:30:00", "18T18:30:00", "19T05:00:00"],
  ["comes in its hours", office, "18T16:30:00", "18T16:30:00", "18T18:30:00"],
  ["comes after midnight in hours that go over it", night, "18T23:30:00", "18T23:30:00", "19T00:30:00"],
  ["waits for the evening in hours that go over midnight", night, "19T05:30:00", "19T05:30:00", "19T22:00:00"],
])("[R6] a heartbeat %s", (_, heartbeat, last, now, next) => {
  const on = (time: string): number => at(`2026-02-${time}.000Z`);
  expect(nextHeartbeat(heartbeat, on(last), on(now))).toBe(on(next));
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
