import { reset } from "cloudflare:test";
import { afterAll, vi } from "vitest";
import { providers } from "../../src/models/models.ts";
import { disarmFaults } from "../../src/shared/fault.ts";
import { loadAll } from "../../src/shared/loaded-once.ts";
// It knows all that objects load when they first need it.
import "../../src/worker.ts";

await loadAll();

/**
 * Vitest's setup of each file of the actors' tests: an actor answers within milliseconds, and on a busy machine within
 * seconds. Vitest itself looks every 50 ms, for one second, so that most of a test would be waiting.
 */
const patience = { interval: 20, timeout: 5000 };
const { waitFor, waitUntil } = vi;

/** Where timers are faked, each look moves their clock on by its interval: vitest's own is kept. */
const patient = <Options>(options: Options | number | undefined) => {
  const given = typeof options === "number" ? { timeout: options } : options;
  return vi.isFakeTimers() ? options : { ...patience, ...given };
};
vi.waitFor = (look, options) => waitFor(look, patient(options));
vi.waitUntil = (look, options) => waitUntil(look, patient(options));

const { rehearsal } = providers;

/** Files share a workerd, one after the other: each leaves what it replaced as it was, and no object of its own at work. */
afterAll(async () => {
  disarmFaults();
  vi.useRealTimers();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  providers.rehearsal = rehearsal;
  await reset();
});
