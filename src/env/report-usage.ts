import type { UsageReport, UsageRow } from "../protocol/usage.ts";
import type { Clock } from "../shared/clock.ts";
import { ColloquyError, unwrap } from "../shared/errors.ts";
import { log } from "../shared/log.ts";
import type { Env } from "./env.ts";

export const usageTimer = "usage";
/** How long what an object used waits to be told with what it uses meanwhile. */
export const usageReportMs = 60_000;
/** Rows that are told at a time. */
const maxRows = 500;

type Surroundings = {
  env: Pick<Env, "WORKSPACE">;
  clock: Clock;
  timers: {
    setNoLater(name: string, at: number): void;
    dueAt(name: string): number | undefined;
  };
  /** Undefined before the object was created. */
  self: () => { workspaceId: string; reporter: string } | undefined;
  /** The tokens of the last days, as they stand. */
  tokens: () => UsageRow[];
  /** What is counted of the rows after one, and up to which; undefined where there are none. */
  count: (after: number) => { upTo: number; rows: UsageRow[] } | undefined;
};

/**
 * Tells the workspace what this object used (L15), a minute after it used something: at most one call a minute.
 *
 * Invariants
 * 1. Tokens are told as they stand, never added: telling them twice changes nothing.
 * 2. The workspace knows up to which row it was told of runs or messages, and adds none twice: this object remembers nothing.
 */
export const createUsageReport = ({ env, clock, timers, self, tokens, count }: Surroundings) => {
  /** The tokens that were told last. */
  const told = new Map<string, number>();
  let upTo: number | undefined;

  const report = async (): Promise<void> => {
    const known = self();
    if (!known) return;
    const workspace = env.WORKSPACE.getByName(known.workspaceId);
    const tell = async (part: Omit<UsageReport, "reporter">): Promise<void> => {
      const answer = await workspace.noteUsage({ reporter: known.reporter, ...part });
      ({ upTo } = unwrap(answer));
    };
    const keyOf = (row: UsageRow): string => row.slice(0, 3).join(" ");
    const untold = tokens().filter((row) => told.get(keyOf(row)) !== row[3]);
    if (upTo === undefined && untold.length === 0) await tell({ tokens: [] });
    for (let from = 0; from < untold.length; from += maxRows) {
      const part = untold.slice(from, from + maxRows);
      await tell({ tokens: part });
      for (const row of part) told.set(keyOf(row), row[3]);
    }
    for (let after = upTo ?? 0; ; after = upTo ?? 0) {
      const counted = count(after);
      if (!counted) return;
      await tell({ tokens: [], counted: { after, ...counted } });
      if ((upTo ?? 0) <= after) return;
    }
  };

  /** The timer `usage` went off. Throws where the workspace is to be told later. */
  const onTimer = async (): Promise<void> => {
    try {
      await report();
    } catch (error) {
      // A workspace that is over counts nothing more.
      if (!(error instanceof ColloquyError) || error.retryable) throw error;
      log.warn("usage.refused", { ...self(), code: error.code });
    }
  };

  return {
    onTimer,

    /** Something was used: it is told within a minute. */
    noted: (): void => timers.setNoLater(usageTimer, clock.now() + usageReportMs),

    /** The object ends: what was not told is told now, if the workspace answers. */
    async tellLast(): Promise<void> {
      if (upTo !== undefined && timers.dueAt(usageTimer) === undefined) return;
      await report().catch((error: unknown) => log.warn("usage.lost", { reason: String(error) }));
    },
  };
};
export type UsageReports = ReturnType<typeof createUsageReport>;
