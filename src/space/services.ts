import type { Env } from "../env.ts";
import { systemClock } from "../shared/clock.ts";
import { openDatabase } from "../shared/database.ts";
import { ColloquyError } from "../shared/errors.ts";
import { fault } from "../shared/fault.ts";
import { createIds } from "../shared/ids.ts";
import { Jobs } from "../timers/jobs.ts";
import { Timers } from "../timers/timers.ts";
import { maxDatabaseBytes } from "./bounds.ts";
import { Delivery, deliverTimer } from "./delivery/delivery.ts";
import { Subscribers } from "./delivery/subscribers.ts";
import { GroupCommit } from "./group-commit.ts";
import { Log, type LogRow, type NewEvent } from "./log/log.ts";
import { Members } from "./members.ts";
import { Decisions } from "./router/decisions.ts";
import { Router } from "./router/router.ts";
import { RouterLedger } from "./router/router-ledger.ts";
import { Settings } from "./settings.ts";
import { ClientRates } from "./sockets/client-rates.ts";
import { createSockets } from "./sockets/space-sockets.ts";
import { LiveStreams } from "./streams/live-streams.ts";
import { ToolCalls } from "./tool-calls/tool-calls.ts";

/** The parts of a space over its database. The modules beside this one act on them. */
export const createServices = (ctx: DurableObjectState, env: Env) => {
  const clock = systemClock;
  const db = openDatabase(ctx.storage);
  const settings = new Settings(db);
  const whose = () => ({ spaceId: settings.find()?.id });
  const timers = new Timers(db, ctx.storage, clock, whose, [deliverTimer]);
  const jobs = new Jobs({ db, timers, clock, whose, waitUntil: (work) => ctx.waitUntil(work) });
  const members = new Members(db);
  const log = new Log(db);
  const subscribers = new Subscribers(db);
  const decisions = new Decisions(db);
  const ledger = new RouterLedger(db);
  const toolCalls = new ToolCalls(db);
  const sockets = createSockets(ctx, env, timers, clock);
  const live = new LiveStreams(clock, (frame) => {
    fault("space.mid-speech", ctx);
    if (sockets.size > 0) sockets.broadcast(JSON.stringify(frame));
  });
  const onForgotten = (): void => {
    for (const each of [log, decisions, ledger, toolCalls, members]) each.clear();
  };
  const around = { ctx, env, timers, clock, log, members, settings, decisions };
  const delivery = new Delivery({ ...around, receivers: env, subscribers, onForgotten });
  const write = (work: (append: Append) => void): void => record(services, work);
  const services = {
    ...{ db, clock, timers, jobs, settings, members, log, subscribers, decisions, toolCalls, sockets, live, delivery },
    ids: createIds(env.SIGNING_SECRET),
    router: new Router({ ...around, jobs, ledger, record: write }),
    rates: new ClientRates(),
    groupCommit: new GroupCommit(ctx.storage),
    /** SQLite's own. Use `transaction` below. */
    inTransaction: <T>(work: () => T): T => ctx.storage.transactionSync(work),
    /** Bytes that the database holds now. */
    databaseBytes: (): number => ctx.storage.sql.databaseSize,
  };
  return services;
};

export type SpaceServices = ReturnType<typeof createServices>;

export type Append = (event: NewEvent) => LogRow;

type Remembering = Pick<
  SpaceServices,
  "inTransaction" | "settings" | "members" | "subscribers" | "log" | "decisions" | "timers"
>;

/** Either all of it is stored, or nothing, and what was read on the way is forgotten. */
export const transaction = <T>({ inTransaction, ...remembering }: Remembering, work: () => T): T => {
  try {
    return inTransaction(work);
  } catch (error) {
    const { settings, members, subscribers, log, decisions, timers } = remembering;
    for (const each of [settings, members, subscribers, log, decisions, timers]) each.forget();
    throw error;
  }
};

/**
 * The only way into the log: one transaction in which the events, what they change and the timer that guards their
 * delivery are stored together; then the sockets and the subscribers are told, in the same turn and order.
 */
export const record = <T>(services: SpaceServices, write: (append: Append) => T): T => {
  const rows: LogRow[] = [];
  const value = transaction(services, () => {
    const written = write((event) => {
      const row = services.log.append(event);
      rows.push(row);
      return row;
    });
    services.delivery.arm(rows);
    return written;
  });
  for (const row of rows) services.sockets.broadcast(row.frame);
  services.delivery.kick(rows);
  return value;
};

/** Throws `limit_reached` where the database holds as much as a space may. */
export const requireStorage = ({ databaseBytes }: Pick<SpaceServices, "databaseBytes">): void => {
  if (databaseBytes() <= maxDatabaseBytes) return;
  throw new ColloquyError(
    "limit_reached",
    `This space holds ${maxDatabaseBytes} bytes, the most (maxDatabaseBytes): open a new one`,
  );
};
