import type { UsageKind, UsageRow } from "../protocol/usage.ts";
import { type Clock, isoTime } from "../shared/clock.ts";
import { maxDatabaseBytes } from "./bounds.ts";
import type { Log } from "./log/log.ts";
import type { RouterLedger } from "./router/router-ledger.ts";
import type { Settings } from "./settings.ts";

/** Events of the log that are counted at a time. */
const eventsAtOnce = 5000;
/** Days of which the router's tokens are told. */
const toldDaysMs = 7 * 24 * 60 * 60_000;

/** What a space tells its workspace: the messages that were said in it, by whom, and the tokens of its router. */
export const usageOf = (
  settings: Settings,
  log: Log,
  ledger: RouterLedger,
  { clock, bytes }: { clock: Clock; bytes: () => number },
) => ({
  bytes,
  bound: {
    name: "maxDatabaseBytes",
    bytes: maxDatabaseBytes,
    what: "This space",
    remedy: "delete messages, set retentionDays, or open a new space",
  },

  self: () => {
    const space = settings.find();
    return space && { workspaceId: space.workspaceId, reporter: space.id };
  },

  tokens: (): UsageRow[] =>
    ledger
      .since(isoTime(clock.now() - toldDaysMs).slice(0, 10))
      .map(({ day, tokens }): UsageRow => [day, "all", "", tokens]),

  count: (after: number): { upTo: number; rows: UsageRow[] } | undefined => {
    const upTo = Math.min(log.head().seq, after + eventsAtOnce);
    if (upTo <= after) return undefined;
    const said = log.said(after, upTo);
    const days = Map.groupBy(said, ({ day }) => day);
    const totals = [...days].map(
      ([day, rows]): UsageRow => [day, "all", "", rows.reduce((sum, row) => sum + row.count, 0)],
    );
    const senders = said.map(({ day, type, id, count }): UsageRow => {
      const kind: UsageKind = type === "agent" ? "agent" : "person";
      return [day, kind, id, count];
    });
    return { upTo, rows: [...totals, ...senders] };
  },
});
