import type { ModelMessage } from "ai";
import { and, asc, between, desc, eq, gt, inArray, max, type SQL, sql } from "drizzle-orm";
import type { Clock } from "../shared/clock.ts";
import { type Database, prepared } from "../shared/database.ts";
import type { JournalMeta, JournalRest } from "./records.ts";
import { journal } from "./schema.ts";

/**
 * The journal is an append-only table of everything that the model was given, said, called and got back.
 *
 * Invariants
 * 1. Rows are appended and never changed. A replay reads from them where its run stands (`run/progress.ts`).
 * 2. A call that was started has its `call` row before its effect, and its `result` row after.
 * 3. The model messages of a run are its `inbox`, `preview`, `assistant` and `result` rows in order; `call` rows
 *    are no message.
 * 4. The rows of a run that is held are read from SQLite once, and appended here and there together. A transaction
 *    that is rolled back forgets them (`services.ts`).
 */
export type JournalRow = typeof journal.$inferSelect;
export type NewRow = Pick<JournalRow, "runOrdinal" | "step" | "kind" | "content"> & { meta?: JournalMeta };

/** Sequence numbers, both ends included. */
export type Stretch = { from: number; to: number };

/** The place of a run's rows: from its first one on, without its rests. */
type Lived = { ordinal: number; journalFrom: number; rests: JournalRest[] | null };

/** The stretches that hold a run's rows. Rows that were written while it rested lie outside them. */
const stretchesOf = ({ journalFrom, rests }: Lived, to = Number.MAX_SAFE_INTEGER): Stretch[] => {
  const stretches: Stretch[] = [];
  let from = journalFrom;
  for (const rest of rests ?? []) {
    stretches.push({ from, to: rest.from - 1 });
    if (rest.to === null) return stretches;
    from = rest.to + 1;
  }
  return [...stretches, { from, to }];
};

/** Two stretches are read as one if no more than so many rows of other runs lie between them. */
const nearRows = 50;

/** The stretches in order, near ones joined, so that no row is in two. */
const joined = (stretches: Stretch[]): Stretch[] => {
  const all: Stretch[] = [];
  for (const stretch of stretches.toSorted((one, other) => one.from - other.from)) {
    const last = all.at(-1);
    if (last && stretch.from <= last.to + nearRows) last.to = Math.max(last.to, stretch.to);
    else all.push({ ...stretch });
  }
  return all;
};

export const isMessage = (row: Pick<JournalRow, "kind" | "content">): row is JournalRow & { content: ModelMessage } =>
  row.kind !== "call";

export const messagesOf = (rows: JournalRow[]): ModelMessage[] => rows.filter(isMessage).map((row) => row.content);

export class Journal {
  readonly #db: Database;
  readonly #clock: Clock;
  /** The newest row's sequence number, once it was read. */
  #lastSeq: number | undefined;
  /** The rows of the runs that are in a loop, by their ordinals; null until they are read. */
  readonly #held = new Map<number, JournalRow[] | null>();
  /** Rows between two sequence numbers for which `which` holds, in order. */
  readonly #between = (which: SQL) =>
    prepared(() =>
      this.#db
        .select()
        .from(journal)
        .where(and(between(journal.seq, sql.placeholder("from"), sql.placeholder("to")), which))
        .orderBy(asc(journal.seq)),
    );
  readonly #ofRun = this.#between(eq(journal.runOrdinal, sql.placeholder("runOrdinal")));
  readonly #ofRuns = this.#between(
    sql`${journal.runOrdinal} in (select value from json_each(${sql.placeholder("ordinals")}))`,
  );
  readonly #messagesIn = this.#between(inArray(journal.kind, ["inbox", "preview", "assistant", "result"]));
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
      .returning(),
  );
  constructor(db: Database, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
  }

  append(row: NewRow): JournalRow {
    const appended = this.#insert(row, this.#clock.now());
    this.#lastSeq = appended.seq;
    this.#held.get(row.runOrdinal)?.push(appended);
    return appended;
  }

  /** Appends a text that a run reads after its input, as a user's message. */
  tell(runOrdinal: number, step: number, text: string, meta?: JournalMeta): void {
    const content = { role: "user", content: text } as const;
    this.append({ runOrdinal, step, kind: "preview", content, ...(meta ? { meta } : {}) });
  }

  #insert(row: NewRow, createdAt: number): JournalRow {
    // A placeholder would store the text "null" for none.
    if (row.meta) return this.#append().get({ ...row, createdAt });
    return this.#db
      .insert(journal)
      .values({ ...row, meta: null, createdAt })
      .returning()
      .get();
  }

  /** Keeps a run's rows in memory until it is released. A new run has none yet. */
  hold(ordinal: number, isNew = false): void {
    if (!this.#held.has(ordinal)) this.#held.set(ordinal, isNew ? [] : null);
  }

  release(ordinal: number): void {
    this.#held.delete(ordinal);
  }

  /** Held rows are read anew when they are asked for next. */
  forget(): void {
    this.#lastSeq = undefined;
    for (const ordinal of this.#held.keys()) this.#held.set(ordinal, null);
  }

  /** The sequence number that the next row will have. */
  nextSeq(): number {
    this.#lastSeq ??=
      this.#db
        .select({ seq: max(journal.seq) })
        .from(journal)
        .get()?.seq ?? 0;
    return this.#lastSeq + 1;
  }

  /** When anything was written last, in milliseconds since the epoch: a run that rests has written nothing since. */
  newestAt(): number | undefined {
    return this.#db.select({ createdAt: journal.createdAt }).from(journal).orderBy(desc(journal.seq)).limit(1).get()
      ?.createdAt;
  }

  /** All rows of one run, in order; up to `to`, if that is given. */
  ofRun(run: Lived, to?: number): JournalRow[] {
    const held = this.#held.get(run.ordinal);
    if (held) return held.filter(({ seq }) => seq <= (to ?? seq));
    const rows = stretchesOf(run, to).flatMap((each) => this.#ofRun().all({ runOrdinal: run.ordinal, ...each }));
    if (held === null && to === undefined) this.#held.set(run.ordinal, [...rows]);
    return rows;
  }

  /** All rows of these runs, which have ended, in order. */
  ofRuns(runs: (Lived & { journalTo: number | null })[]): JournalRow[] {
    const ordinals = JSON.stringify(runs.map(({ ordinal }) => ordinal));
    const stretches = joined(runs.flatMap((run) => stretchesOf(run, run.journalTo ?? run.journalFrom)));
    return stretches.flatMap((stretch) => this.#ofRuns().all({ ...stretch, ordinals }));
  }

  /** When this call of a run was begun, in milliseconds since the epoch. */
  startOf(run: Lived, callId: string): number | undefined {
    const rows = this.ofRun(run).filter((row) => row.kind === "call");
    return rows.find((row) => "callId" in row.content && row.content.callId === callId)?.createdAt;
  }

  /** The rows after `seq`, in order. */
  after(seq: number, limit: number): JournalRow[] {
    return this.#db.select().from(journal).where(gt(journal.seq, seq)).orderBy(asc(journal.seq)).limit(limit).all();
  }

  /** The message rows of one stretch of sequence numbers, in order. */
  messagesIn({ from, to }: Stretch): JournalRow[] {
    return this.#messagesIn().all({ from, to });
  }
}
