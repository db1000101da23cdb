import { expect, test } from "vitest";
import { routerRetryMs } from "../../src/space/bounds.ts";
import { CircuitBreaker } from "../../src/space/router/circuit-breaker.ts";

const start = 1_000_000;

test("[R4] each fault after a pause makes the next one longer, until routerRetryMs is over", () => {
  const breaker = new CircuitBreaker();
  expect(breaker.openUntil()).toBeLessThan(start);
  const rests: number[] = [];
  let now = start;
  while (breaker.opensFor(now, start)) {
    rests.push(breaker.openUntil() - now);
    now = breaker.openUntil();
  }
  expect(rests.length).toBeGreaterThanOrEqual(4);
  for (const [index, rest] of rests.entries()) {
    expect(rest).toBeGreaterThanOrEqual(1000 * 2 ** index);
    expect(rest).toBeLessThanOrEqual(1500 * 2 ** index);
  }
  expect(now).toBeLessThanOrEqual(start + routerRetryMs);
  // A message that is given up makes no other wait.
  expect(breaker.openUntil()).toBeLessThanOrEqual(now);
});

test("[R4] faults of concurrent asks count as one, and the longest Retry-After holds", () => {
  const breaker = new CircuitBreaker();
  for (let asks = 0; asks < 20; asks += 1) expect(breaker.opensFor(start, start)).toBe(true);
  expect(breaker.openUntil()).toBeLessThanOrEqual(start + 1500);
  expect(breaker.opensFor(start + 1, start, 20_000)).toBe(true);
  const then = breaker.openUntil();
  expect(then).toBe(start + 20_001);
  expect(breaker.opensFor(then, start)).toBe(true);
  expect(breaker.openUntil()).toBeLessThanOrEqual(then + 3000);
});

test("[R4] nobody waits for a pause that is too long, nor for an outage that began long ago", () => {
  const breaker = new CircuitBreaker();
  expect(breaker.opensFor(start, start, routerRetryMs + 1)).toBe(false);
  expect(breaker.openUntil()).toBe(start);
  expect(breaker.opensFor(start + 1, start + 1, routerRetryMs - 10_000)).toBe(true);
  const later = start + routerRetryMs;
  expect(breaker.opensFor(later, later)).toBe(false);
});

test("[R4] an outage is over when the model answers, or when no fault was seen for long", () => {
  for (const end of ["answered", "forgotten"]) {
    const breaker = new CircuitBreaker();
    expect(breaker.opensFor(start, start - routerRetryMs)).toBe(false);
    if (end === "answered") breaker.close();
    const later = start + (end === "answered" ? routerRetryMs - 1 : routerRetryMs);
    expect(breaker.opensFor(later, later)).toBe(true);
  }
});
