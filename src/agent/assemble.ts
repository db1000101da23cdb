import type { Clock } from "../shared/clock.ts";
import type { Database } from "../shared/database.ts";
import type { Env } from "../shared/env.ts";
import { createIds } from "../shared/ids.ts";
import type { Timers } from "../timers/timers.ts";
import { Consciousness } from "./consciousness.ts";
import { Hooks } from "./hooks/hooks.ts";
import { Identity } from "./identity.ts";
import { Inbox } from "./inbox.ts";
import { Journal } from "./journal.ts";
import { Ledger } from "./ledger.ts";
import { Goals } from "./memory/goals.ts";
import { Memories } from "./memory/memories.ts";
import { Plans } from "./plans/plans.ts";
import { Roots } from "./roots.ts";
import { Runs } from "./runs.ts";
import { Spaces } from "./spaces.ts";
import type { Parts } from "./think/parts.ts";
import { createRegistry } from "./tools/registry.ts";
import { Waits } from "./waits.ts";

/** An agent's parts over its database. */
export const assemble = (
  db: Database,
  ctx: Pick<DurableObjectState, "storage" | "abort">,
  env: Env,
  clock: Clock,
  timers: Timers,
  stopThink: Parts["stopThink"],
): Parts => {
  const identity = new Identity(db, clock);
  const spaces = new Spaces(db);
  const transaction: Parts["transaction"] = (work) => {
    try {
      return ctx.storage.transactionSync(work);
    } catch (error) {
      for (const remembering of [identity, spaces]) remembering.forget();
      throw error;
    }
  };
  const runs = new Runs(db);
  const journal = new Journal(db, clock);
  return {
    env,
    clock,
    runs,
    journal,
    ids: createIds(env.SIGNING_SECRET),
    identity,
    inbox: new Inbox(db, clock),
    consciousness: new Consciousness(db, clock, runs, journal),
    spaces,
    roots: new Roots(db, clock),
    ledger: new Ledger(db, clock),
    waits: new Waits(db, clock),
    memories: new Memories(db, clock),
    goals: new Goals(db, clock),
    plans: new Plans(db, clock, timers, transaction),
    hooks: new Hooks(db, clock),
    tools: createRegistry(),
    transaction,
    stopThink,
    object: ctx,
  };
};
