import { expect, test } from "vitest";
import { maxMembers } from "../../src/protocol/space.ts";
import { createRateWindow } from "../../src/sockets/rate-window.ts";
import { frameWindowMs, maxMemberFrames, maxSockets, maxSocketsPerMember } from "../../src/space/bounds.ts";
import { createMemberRates } from "../../src/space/client-rates.ts";
import { requireSocketRoom } from "../../src/space/space-sockets.ts";

/** Sockets of these members, each with so many. */
const held = (counts: Record<string, number>) => {
  const all = Object.entries(counts).flatMap(([entityId, count]) =>
    Array.from({ length: count }, () => ({ data: { entityId } }) as never),
  );
  return { size: all.length, all: () => all };
};

test("[B3] a socket beyond the space's or the member's bound is refused by the bound's name", () => {
  const others = Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`other ${index}`, 100]));
  requireSocketRoom(held({ ann: maxSocketsPerMember - 1 }), "ann");
  expect(() => requireSocketRoom(held({ ann: maxSocketsPerMember }), "ann")).toThrow(
    `${maxSocketsPerMember} sockets here, which is the most (maxSocketsPerMember)`,
  );
  requireSocketRoom(held({ ...others, ann: maxSockets - 4001 }), "bob");
  expect(() => requireSocketRoom(held({ ...others, ann: maxSockets - 4000 }), "bob")).toThrow(
    `${maxSockets} sockets, which is the most (maxSockets)`,
  );
});

test("a window admits so many, and opens again when it is over", () => {
  const window = createRateWindow(2, 100);
  expect([0, 10, 20, 99].map((now) => window.admits(now))).toEqual([true, true, false, false]);
  expect([100, 150, 160].map((now) => window.admits(now))).toEqual([true, true, false]);
});

test("[B3] a window is over when the clock goes back: nobody waits until it has caught up", () => {
  const window = createRateWindow(1, 10_000);
  expect([3_600_000, 3_600_001, 0, 1].map((now) => window.admits(now))).toEqual([true, false, true, false]);
});

test("a window says how long it stays shut, in whole seconds, and when it is over", () => {
  const window = createRateWindow(1, 10_000);
  window.admits(0);
  expect([0, 1, 9000, 9999].map((now) => window.waitSeconds(now))).toEqual([10, 10, 1, 1]);
  expect([9999, 10_000].map((now) => window.isOver(now))).toEqual([false, true]);
});

test("[B3] a member's window outlives its sockets, and is dropped only once over, among many", () => {
  const rates = createMemberRates(maxMemberFrames, frameWindowMs);
  const anns = rates.of("ann", 0);
  for (let count = 0; count < maxMemberFrames; count += 1) expect(anns.admits(0)).toBe(true);
  for (let index = 1; index < maxMembers; index += 1) rates.of(`early ${index}`, 0).admits(0);
  rates.of("one more", frameWindowMs - 1).admits(frameWindowMs - 1);
  expect(rates.size()).toBe(maxMembers + 1);
  expect(rates.of("ann", frameWindowMs - 1).admits(frameWindowMs - 1)).toBe(false);
  rates.of("late", frameWindowMs);
  expect(rates.size()).toBe(2);
  expect(rates.of("ann", frameWindowMs).admits(frameWindowMs)).toBe(true);
});
