import type { Env } from "../env/env.ts";
import type { EndpointConfig } from "../protocol/endpoint-rpc.ts";
import { systemClock } from "../shared/clock.ts";
import { hasSchema, openDatabase, Remembered } from "../shared/database.ts";
import { errorKind, unwrap } from "../shared/errors.ts";
import { withTimeout } from "../shared/timeouts.ts";
import { createJobs } from "../timers/jobs.ts";
import { createTimers } from "../timers/timers.ts";
import { sourceTimeoutMs } from "./bounds.ts";
import { createDeliveries } from "./deliveries.ts";
import { endpoint } from "./schema.ts";
import { createSending } from "./sending.ts";
import { createSources } from "./sources.ts";

export const pruneTimer = "prune";
const gaveUp = "gave-up";

/** The parts of an endpoint over its database. */
export const createServices = (ctx: DurableObjectState, env: Env) => {
  const clock = systemClock;
  const db = openDatabase(ctx.storage);
  const timers = createTimers(db, ctx.storage, clock);
  const waitUntil = (work: Promise<void>): void => ctx.waitUntil(work);
  const jobs = createJobs({ db, timers, clock, waitUntil, object: ctx.id.toString() });
  const row = new Remembered(db, () => (hasSchema(ctx.storage) ? db.select().from(endpoint).get() : undefined));
  const self = (): EndpointConfig | undefined => row.get()?.config;
  const sources = createSources(db);
  const deliveries = createDeliveries(db, clock);

  const setConfig = (config: EndpointConfig): void => {
    const values = { id: config.id, config };
    db.insert(endpoint).values(values).onConflictDoUpdate({ target: endpoint.id, set: values }).run();
    row.forget();
  };

  jobs.handle(gaveUp, {
    atOnce: 1,
    async run({ payload }) {
      const config = self();
      if (!config) return undefined;
      const workspace = env.WORKSPACE.getByName(config.workspaceId);
      const told = await withTimeout(
        sourceTimeoutMs,
        workspace.endpointFailed(config.id, config.version, String(payload)),
      );
      if (!told.ok && errorKind(told.problem.code).retryable) unwrap(told);
      return undefined;
    },
  });

  const sending = createSending({
    ...{ env, db, clock, jobs, self, sources, deliveries, waitUntil, object: ctx },
    giveUp(config, detail) {
      setConfig({ ...config, rests: "disabled" });
      jobs.set({ kind: gaveUp, key: gaveUp, payload: detail });
    },
    stored() {
      if (timers.dueAt(pruneTimer) === undefined) prune();
    },
  });

  const prune = (): void => {
    const next = deliveries.prune();
    if (next === undefined) timers.clear(pruneTimer);
    else timers.set(pruneTimer, next);
  };

  return { db, clock, timers, jobs, self, forget: () => row.forget(), setConfig, sources, deliveries, sending, prune };
};
export type EndpointServices = ReturnType<typeof createServices>;
