import type { Clock } from "../shared/clock.ts";
import type { Database } from "../shared/database.ts";
import type { Ids } from "../shared/ids.ts";
import type { Jobs } from "../timers/jobs.ts";
import type { Timers } from "../timers/timers.ts";
import type { Delivery } from "./delivery/delivery.ts";
import type { Subscribers } from "./delivery/subscribers.ts";
import type { Gathering } from "./gathering.ts";
import type { Log, LogRow, NewEvent } from "./log.ts";
import type { Members } from "./members.ts";
import type { Decisions } from "./router/decisions.ts";
import type { Router } from "./router/router.ts";
import type { Settings } from "./settings.ts";
import type { ClientRates } from "./sockets/client-rates.ts";
import type { SpaceSockets } from "./sockets/space-sockets.ts";
import type { LiveStreams } from "./streams/live-streams.ts";
import type { ToolCalls } from "./tool-calls/tool-calls.ts";

/** What a space is made of; the modules beside this one act on it. */
export type Parts = {
  db: Database;
  clock: Clock;
  ids: Ids;
  timers: Timers;
  jobs: Jobs;
  settings: Settings;
  members: Members;
  log: Log;
  gathering: Gathering;
  subscribers: Subscribers;
  decisions: Decisions;
  delivery: Delivery;
  router: Router;
  sockets: SpaceSockets;
  rates: ClientRates;
  live: LiveStreams;
  toolCalls: ToolCalls;
  /** SQLite's own, which `transaction` below is the way to. */
  inTransaction: <T>(work: () => T) => T;
  /** Bytes that the database holds now. */
  databaseBytes: () => number;
};

export type Append = (event: NewEvent) => LogRow;

type Remembering = Pick<
  Parts,
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
export const record = <T>(parts: Parts, write: (append: Append) => T): T => {
  const rows: LogRow[] = [];
  const value = transaction(parts, () => {
    const written = write((event) => {
      const row = parts.log.append(event);
      rows.push(row);
      return row;
    });
    parts.delivery.arm(rows);
    return written;
  });
  for (const row of rows) parts.sockets.broadcast(row.frame);
  parts.delivery.kick(rows);
  return value;
};
