import { expect, test } from "vitest";
import { routerPatienceMs } from "../../src/space/bounds.ts";
import { Patience } from "../../src/space/router/patience.ts";

const start = 1_000_000;

test("[R4] each fault after a rest makes the next one longer, until patience is over", () => {
  const patience = new Patience();
  expect(patience.restsUntil()).toBeLessThan(start);
  const rests: number[] = [];
  let now = start;
  while (patience.isLeftAfterFault(now, start)) {
    rests.push(patience.restsUntil() - now);
    now = patience.restsUntil();
  }
  expect(rests.length).toBeGreaterThanOrEqual(4);
  for (const [index, rest] of rests.entries()) {
    expect(rest).toBeGreaterThanOrEqual(1000 * 2 ** index);
    expect(rest).toBeLessThanOrEqual(1500 * 2 ** index);
  }
  expect(now).toBeLessThanOrEqual(start + routerPatienceMs);
  // Who is given up makes nobody rest.
  expect(patience.restsUntil()).toBeLessThanOrEqual(now);
});

test("[R4] faults of asks beside each other are one, and the longest wait that was asked for holds", () => {
  const patience = new Patience();
  for (let asks = 0; asks < 20; asks += 1) expect(patience.isLeftAfterFault(start, start)).toBe(true);
  expect(patience.restsUntil()).toBeLessThanOrEqual(start + 1500);
  expect(patience.isLeftAfterFault(start + 1, start, 20_000)).toBe(true);
  const then = patience.restsUntil();
  expect(then).toBe(start + 20_001);
  expect(patience.isLeftAfterFault(then, start)).toBe(true);
  expect(patience.restsUntil()).toBeLessThanOrEqual(then + 3000);
});

test("[R4] a wait that is too long is not waited, by nobody; nor a trouble that goes on, by what is said in it", () => {
  const patience = new Patience();
  expect(patience.isLeftAfterFault(start, start, routerPatienceMs + 1)).toBe(false);
  expect(patience.restsUntil()).toBe(start);
  expect(patience.isLeftAfterFault(start + 1, start + 1, routerPatienceMs - 10_000)).toBe(true);
  const later = start + routerPatienceMs;
  expect(patience.isLeftAfterFault(later, later)).toBe(false);
});

test("[R4] a trouble is over when the model answers, or was not seen for long", () => {
  for (const end of ["answered", "forgotten"]) {
    const patience = new Patience();
    expect(patience.isLeftAfterFault(start, start - routerPatienceMs)).toBe(false);
    if (end === "answered") patience.answered();
    const later = start + (end === "answered" ? routerPatienceMs - 1 : routerPatienceMs);
    expect(patience.isLeftAfterFault(later, later)).toBe(true);
  }
});
