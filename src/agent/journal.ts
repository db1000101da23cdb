import type { ModelMessage } from "ai";
import { and, asc, between, eq, inArray, max, sql } from "drizzle-orm";
import type { Clock } from "../shared/clock.ts";
import { type Database, prepared } from "../shared/database.ts";
import type { JournalMeta } from "./records.ts";
import { journal } from "./schema.ts";

/**
 * The journal is the mind: one append-only table of everything that the model was given, said, called and got back.
 *
 * Invariants
 * 1. Rows are appended and never changed. A replay reads where it was (`think/progress.ts`).
 * 2. A call that was started has its `call` row before its effect, and its `result` row after.
 * 3. The model messages of a run are its `inbox`, `preview`, `assistant` and `result` rows in order; `call` rows
 *    are no message.
 */
export type JournalRow = typeof journal.$inferSelect;
export type NewRow = Pick<JournalRow, "runOrdinal" | "step" | "kind" | "content"> & { meta?: JournalMeta };

/** Sequence numbers, both ends included. */
export type Stretch = { from: number; to: number };

export const isMessage = (row: Pick<JournalRow, "kind" | "content">): row is JournalRow & { content: ModelMessage } =>
  row.kind !== "call";

export const messagesOf = (rows: JournalRow[]): ModelMessage[] => rows.filter(isMessage).map((row) => row.content);

export class Journal {
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #ofRun = prepared(() =>
    this.#db
      .select()
      .from(journal)
      .where(
        and(
          between(journal.seq, sql.placeholder("from"), sql.placeholder("to")),
          eq(journal.runOrdinal, sql.placeholder("runOrdinal")),
        ),
      )
      .orderBy(asc(journal.seq))
      .prepare(),
  );
  readonly #messagesIn = prepared(() =>
    this.#db
      .select()
      .from(journal)
      .where(
        and(
          between(journal.seq, sql.placeholder("from"), sql.placeholder("to")),
          inArray(journal.kind, ["inbox", "preview", "assistant", "result"]),
        ),
      )
      .orderBy(asc(journal.seq))
      .prepare(),
  );
  readonly #append = prepared(() =>
    this.#db
      .insert(journal)
      .values({
        runOrdinal: sql.placeholder("runOrdinal"),
        step: sql.placeholder("step"),
        kind: sql.placeholder("kind"),
        content: sql.placeholder("content"),
        meta: sql.placeholder("meta"),
        createdAt: sql.placeholder("createdAt"),
      })
      .returning()
      .prepare(),
  );
  readonly #ofRuns = prepared(() =>
    this.#db
      .select()
      .from(journal)
      .where(
        and(
          between(journal.seq, sql.placeholder("from"), sql.placeholder("to")),
          sql`${journal.runOrdinal} in (select value from json_each(${sql.placeholder("ordinals")}))`,
        ),
      )
      .orderBy(asc(journal.seq))
      .prepare(),
  );

  constructor(db: Database, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
  }

  append(row: NewRow): JournalRow {
    const createdAt = this.#clock.now();
    // A placeholder would store the text "null" for none.
    if (row.meta) return this.#append().get({ ...row, createdAt });
    return this.#db
      .insert(journal)
      .values({ ...row, meta: null, createdAt })
      .returning()
      .get();
  }

  /** The sequence number that the next row will have. */
  nextSeq(): number {
    return (
      (this.#db
        .select({ seq: max(journal.seq) })
        .from(journal)
        .get()?.seq ?? 0) + 1
    );
  }

  /** All rows of one run, in order. `from` is its first row's sequence number. */
  ofRun(runOrdinal: number, from: number, to?: number): JournalRow[] {
    return this.#ofRun().all({ runOrdinal, from, to: to ?? Number.MAX_SAFE_INTEGER });
  }

  /** All rows of these runs, which have ended, in order. */
  ofRuns(runs: { ordinal: number; journalFrom: number; journalTo: number | null }[]): JournalRow[] {
    if (runs.length === 0) return [];
    return this.#ofRuns().all({
      from: Math.min(...runs.map(({ journalFrom }) => journalFrom)),
      to: Math.max(...runs.map(({ journalFrom, journalTo }) => journalTo ?? journalFrom)),
      ordinals: JSON.stringify(runs.map(({ ordinal }) => ordinal)),
    });
  }

  /** When this call of a run was begun, in milliseconds since the epoch. */
  startOf(run: { ordinal: number; journalFrom: number }, callId: string): number | undefined {
    const rows = this.ofRun(run.ordinal, run.journalFrom).filter((row) => row.kind === "call");
    return rows.find((row) => "callId" in row.content && row.content.callId === callId)?.createdAt;
  }

  /** The message rows of one stretch of sequence numbers, in order. */
  messagesIn({ from, to }: Stretch): JournalRow[] {
    return this.#messagesIn().all({ from, to });
  }
}
