import { systemClock } from "../shared/clock.ts";
import { openDatabase } from "../shared/database.ts";
import type { Env } from "../shared/env.ts";
import { fault } from "../shared/fault.ts";
import { createIds } from "../shared/ids.ts";
import { Jobs } from "../timers/jobs.ts";
import { Timers } from "../timers/timers.ts";
import { Delivery } from "./delivery/delivery.ts";
import { Subscribers } from "./delivery/subscribers.ts";
import { Gathering } from "./gathering.ts";
import { Log } from "./log.ts";
import { Members } from "./members.ts";
import { type Parts, record } from "./parts.ts";
import { Decisions } from "./router/decisions.ts";
import { Router } from "./router/router.ts";
import { RouterLedger } from "./router/router-ledger.ts";
import { Settings } from "./settings.ts";
import { ClientRates } from "./sockets/client-rates.ts";
import { createSockets } from "./sockets/space-sockets.ts";
import { LiveStreams } from "./streams/live-streams.ts";
import { ToolCalls } from "./tool-calls/tool-calls.ts";

/** A space's parts over its database. */
export const assemble = (ctx: DurableObjectState, env: Env): Parts => {
  const clock = systemClock;
  const db = openDatabase(ctx.storage);
  const whose = () => ({ spaceId: settings.find()?.id });
  const timers = new Timers(db, ctx.storage, clock, whose);
  const jobs = new Jobs({ db, timers, clock, whose, waitUntil: (work) => ctx.waitUntil(work) });
  const settings = new Settings(db);
  const members = new Members(db);
  const log = new Log(db);
  const subscribers = new Subscribers(db);
  const sockets = createSockets(ctx, env, timers, clock);
  const live = new LiveStreams(clock, (frame) => {
    fault("space.mid-speech", ctx);
    if (sockets.size > 0) sockets.broadcast(JSON.stringify(frame));
  });
  const decisions = new Decisions(db);
  const ledger = new RouterLedger(db);
  const toolCalls = new ToolCalls(db);
  const onForgotten = (): void => {
    log.clear();
    decisions.clear();
    ledger.clear();
    toolCalls.clear();
    members.clear();
  };
  const around = { ctx, env, timers, clock, log, members, settings, decisions };
  const delivery = new Delivery({ ...around, receivers: env, subscribers, onForgotten });
  const router = new Router({ ...around, jobs, ledger, record: (write) => record(parts, write) });
  const ids = createIds(env.SIGNING_SECRET);
  const databaseBytes = (): number => ctx.storage.sql.databaseSize;
  const inTransaction = <T>(work: () => T): T => ctx.storage.transactionSync(work);
  const gathering = new Gathering(ctx.storage);
  const told = { toolCalls, delivery, router, sockets, live };
  const parts = {
    db,
    clock,
    ids,
    timers,
    jobs,
    settings,
    members,
    log,
    subscribers,
    decisions,
    ...told,
    rates: new ClientRates(),
    gathering,
    inTransaction,
    databaseBytes,
  };
  return parts;
};
