import { nearPart, type StorageUse, type UsageReport, type UsageRow } from "../protocol/usage.ts";
import type { Clock } from "../shared/clock.ts";
import { ColloquyError, unwrap } from "../shared/errors.ts";
import { log } from "../shared/log.ts";
import { meter } from "../shared/meter.ts";
import type { Env } from "./env.ts";

export const usageTimer = "usage";
/** How long what an object used waits to be told with what it uses meanwhile. */
export const usageReportMs = 60_000;
/** Bytes by which an object has grown, or shrunk, that are told though nothing else was used. */
const toldBytes = 256 * 1024;
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
  /** The counts of the rows after one, and up to which; undefined where there are none. */
  count: (after: number) => { upTo: number; rows: UsageRow[] } | undefined;
  /** The bytes that the object stores, and their bound. */
  bytes: () => number;
  bound: { name: string; bytes: number; what: string; remedy: string };
};

/**
 * Tells the workspace what this object used (L15), a minute after it used something: at most one call a minute.
 *
 * Invariants
 * 1. Tokens are told as they stand, never added: telling them twice changes nothing.
 * 2. It tells what it stores with that, and hears whether the workspace stores all that it may (L17). While it is full it asks
 *    every minute, and what is there can be read and deleted.
 * 3. The workspace knows up to which row it was told of runs or messages, and adds none twice: this object remembers nothing.
 */
export const createUsageReport = ({ env, clock, timers, self, tokens, count, bytes, bound }: Surroundings) => {
  /** The tokens that were told last. */
  const told = new Map<string, number>();
  let upTo: number | undefined;
  let bytesTold: number | undefined;
  let isWorkspaceFull = false;

  const fullBy = (): string | undefined => {
    if (bytes() >= bound.bytes) return bound.name;
    return isWorkspaceFull ? "maxStorageBytes" : undefined;
  };

  const report = async (isLast = false): Promise<void> => {
    const known = self();
    if (!known) return;
    const stored = isLast ? 0 : bytes();
    meter.gauge("storage_bytes", known.reporter, stored);
    meter.gauge("storage_near", known.reporter, Number(stored >= nearPart * bound.bytes));
    const workspace = env.WORKSPACE.getByName(known.workspaceId);
    const tell = async (part: Omit<UsageReport, "reporter">): Promise<void> => {
      const size = { bytes: stored, maxBytes: bound.bytes };
      const heard = unwrap(await workspace.noteUsage({ reporter: known.reporter, ...size, ...part }));
      upTo = heard.upTo;
      isWorkspaceFull = heard.isFull === true;
      bytesTold = stored;
    };
    const keyOf = (row: UsageRow): string => row.slice(0, 3).join(" ");
    const untold = tokens().filter((row) => told.get(keyOf(row)) !== row[3]);
    if (untold.length === 0) await tell({ tokens: [] });
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
    if (fullBy() !== undefined) noted();
  };

  const noted = (): void => timers.setNoLater(usageTimer, clock.now() + usageReportMs);

  return {
    onTimer,

    /** Something was used: it is told within a minute. */
    noted,

    /** Something may have been stored or deleted: what is much is told within a minute. */
    stored(): void {
      if (Math.abs(bytes() - (bytesTold ?? 0)) > toldBytes) noted();
    },

    fullBy,

    /** Throws where nothing new is taken. What is new is told: so an object that was quiet hears of a full workspace within a minute. */
    requireRoom(): void {
      const name = fullBy();
      noted();
      if (name === undefined) return;
      const says =
        name === bound.name
          ? `${bound.what} stores ${bytes()} bytes, and may ${bound.bytes} (${name}): ${bound.remedy}`
          : `The workspace stores all that its operator allows (${name}): delete spaces, agents or messages, or ask the operator for more`;
      throw new ColloquyError("limit_reached", `${says}. Nothing new is taken.`);
    },

    storage(): StorageUse {
      const [now, name] = [bytes(), fullBy()];
      const state = name !== undefined ? "full" : now >= nearPart * bound.bytes ? "near" : "ok";
      return { bytes: now, maxBytes: bound.bytes, state };
    },

    /** The object ends: what was not told is told now, if the workspace answers. */
    async tellLast(): Promise<void> {
      await report(true).catch((error: unknown) => log.warn("usage.lost", { reason: String(error) }));
    },
  };
};
export type UsageReports = ReturnType<typeof createUsageReport>;
