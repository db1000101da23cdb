import type { ModelMessage } from "ai";
import { and, asc, desc, eq, getTableColumns, gt, gte, lt, max, type SQL, sql } from "drizzle-orm";
import type { JournalMeta } from "../protocol/exported-history.ts";
import type { Clock } from "../shared/clock.ts";
import { type Database, placeholders, prepared, Remembered } from "../shared/database.ts";
import { ownPart } from "../shared/ids.ts";
import { maxPastResultBytes, maxPastResultCharacters } from "./bounds.ts";
import type { JournalRest } from "./records.ts";
import { journal, journalNames } from "./schema.ts";

/**
 * The journal is an append-only table of everything that the model was given, said, called and got back.
 *
 * Invariants
 * 1. Rows are appended. Only a redaction changes them: it removes words that somebody took back, from new rows too
 *    while it lasts (`redaction/`). Old runs are cut (`api/journal-cuts.ts`). A replay tells by them what is next
 *    (`run/next-step.ts`).
 * 2. A call that was started has its `call` row before its effect, and its `result` row after.
 * 3. A run's model messages are its `inbox`, `preview`, `assistant` and `result` rows in order; `call` rows are none.
 * 4. The rows of a run that is held are read from SQLite once, and appended here and there together.
 */
export type JournalRow = typeof journal.$inferSelect;
type NewRow = Pick<JournalRow, "runOrdinal" | "step" | "kind" | "content"> & {
  meta?: JournalMeta | null;
  /** When another mind wrote the row; left out: now. */
  createdAt?: number;
};

/** A message that is said within this time counts as written when it was said. */
const lateMs = 60_000;

/** The place of a run's rows: from its first one on, without its rests. `journalTo` is null while it goes on. */
type Lived = { ordinal: number; journalFrom: number; journalTo: number | null; rests: JournalRest[] | null };

/** The stretches that hold a run's rows, by their first and last `seq`. Rows that came while it rested lie outside. */
const stretchesOf = ({ ordinal, journalFrom, journalTo, rests }: Lived) => {
  const stretches: { from: number; to: number; ordinal: number }[] = [];
  let from = journalFrom;
  for (const rest of rests ?? []) {
    stretches.push({ from, to: rest.from - 1, ordinal });
    if (rest.to === null) return stretches;
    from = rest.to + 1;
  }
  return [...stretches, { from, to: journalTo ?? Number.MAX_SAFE_INTEGER, ordinal }];
};

export const isMessage = (row: Pick<JournalRow, "kind" | "content">): row is JournalRow & { content: ModelMessage } =>
  row.kind !== "call";

export const messagesOf = (rows: JournalRow[]): ModelMessage[] => rows.filter(isMessage).map((row) => row.content);

export type Journal = ReturnType<typeof createJournal>;

const inStretch = prepared((db) => {
  const [from, to] = [sql.placeholder("from"), sql.placeholder("to")];
  const isIn = sql`seq between ${from} and ${to} and run_ordinal = ${sql.placeholder("ordinal")}`;
  return db.select().from(journal).where(isIn).orderBy(asc(journal.seq));
});
const { content, ...others } = getTableColumns(journal);
/** The rows in some stretches. SQLite reads nothing between them. */
const withinAs = (shown: SQL) =>
  prepared((db) =>
    db
      .select({ ...others, content: shown.mapWith(content) })
      .from(sql`json_each(${sql.placeholder("stretches")}) stretch`)
      .crossJoin(journal)
      .where(sql`seq between value ->> 'from' and value ->> 'to' and run_ordinal = value ->> 'ordinal'`),
  );
const within = withinAs(sql`${content}`);
/** Without the texts of inputs, which are long: SQLite skips them. */
const withinUntold = withinAs(sql`iif(${journal.kind} = 'inbox', '{"role":"user","content":""}', ${content})`);
/** The same, and of a long result its beginning alone. SQLite tells its bytes without reading it. */
const withinShort = withinAs(sql`case when ${journal.kind} = 'inbox' then '{"role":"user","content":""}'
  when ${journal.kind} = 'result' and octet_length(${content}) > ${sql.raw(String(maxPastResultBytes))} then
    json_object('role', 'tool', 'content', json_array(json_object('type', 'tool-result', 'toolCallId', '', 'toolName', '',
      'output', json_object('type', 'json', 'value', json_object('bytes', octet_length(${content}),
        'beginning', substr(${content}, instr(${content}, '"value":') + 8, ${sql.raw(String(maxPastResultCharacters))}))))))
  else ${content} end`);
const appending = prepared((db) =>
  db
    .insert(journal)
    // As a column's own placeholder, no meta would be the text "null".
    .values({
      ...placeholders(["runOrdinal", "step", "kind", "content", "createdAt"]),
      meta: sql`${sql.placeholder("meta")}`,
    })
    .returning(),
);

/** `clean`: what a row may hold, without the words that are being taken out. */
export const createJournal = (
  db: Database,
  clock: Clock,
  clean: <Value>(value: Value, writtenAt?: number) => Value,
) => {
  const lastSeq = new Remembered(db, () => {
    const last = db.select({ seq: max(journal.seq) }).from(journal);
    return { seq: last.get()?.seq ?? 0 };
  });
  /** The ordinals of the runs that are in a loop, and their rows as far as they were read. */
  const held = new Set<number>();
  const heldRows = new Remembered<Map<number, JournalRow[]>>(db, () => new Map());

  /**
   * Takes in the names of the rows since it was asked last. Each row is read for it once.
   */
  const takeNames = (): void => {
    const come = db.select().from(journalNames).where(eq(journalNames.part, "")).get();
    if (come && come.seq >= lastSeq.get().seq) return;
    const isNew = sql`journal.seq > ${come?.seq ?? Number.MIN_SAFE_INTEGER}`;
    db.run(sql`insert or ignore into journal_names (part, seq)
      select substr(value, -34, 26), seq from journal, json_each(meta, '$.eventIds') where ${isNew}
      union all select substr(value ->> '$.callId', -34, 26), seq from journal, json_each(meta, '$.calls') where ${isNew}
      union all select substr(content ->> '$.content[0].output.value.messageId', -34, 26), seq from journal
        where kind = 'result' and ${isNew}
      union all select substr(content ->> '$.messageId', -34, 26), seq from journal where kind = 'call' and ${isNew}
      order by 2`);
    db.run(sql`insert or replace into journal_names select '', coalesce((select max(seq) from journal), 0)`);
  };

  return {
    append(written: NewRow): JournalRow {
      const { meta, ...row } = clean(written, written.createdAt);
      const noted = meta ? JSON.stringify(meta) : null;
      const appended = appending(db).get({ createdAt: clock.now(), ...row, meta: noted });
      lastSeq.get().seq = appended.seq;
      heldRows.get().get(row.runOrdinal)?.push(appended);
      return appended;
    },

    /** Appends a text that a run reads after its input, as a user's message. */
    tell(runOrdinal: number, step: number, text: string, meta: JournalMeta | null = null): void {
      this.append({ runOrdinal, step, kind: "preview", content: { role: "user", content: text }, meta });
    },

    /** Keeps a run's rows in memory until it is released. A new run has none yet. */
    hold(ordinal: number, isNew = false): void {
      held.add(ordinal);
      if (isNew) heldRows.get().set(ordinal, []);
    },

    release(ordinal: number): void {
      held.delete(ordinal);
      heldRows.get().delete(ordinal);
    },

    holdsUpTo: (ordinal: number): boolean => [...held].some((each) => each <= ordinal),

    /** The sequence number that the next row will have. */
    nextSeq: (): number => lastSeq.get().seq + 1,

    /** All rows of one run, in order; up to `to`, if that is given. */
    ofRun(run: Lived, to?: number): JournalRow[] {
      const known = heldRows.get().get(run.ordinal);
      if (known) return known.filter(({ seq }) => seq <= (to ?? seq));
      const rows = stretchesOf({ ...run, journalTo: to ?? null }).flatMap((stretch) => inStretch(db).all(stretch));
      if (held.has(run.ordinal) && to === undefined) heldRows.get().set(run.ordinal, [...rows]);
      return rows;
    },

    /**
     * The rows of these runs, in order: of one that has ended those up to its end. Without `texts`, what the model was
     * given is left out of them; `short`ened, most of long results too.
     */
    ofRuns(runs: Lived[], { texts = true, short = false } = {}): JournalRow[] {
      const untold = short ? withinShort(db) : withinUntold(db);
      const query = texts ? within(db) : untold;
      const rows = query.all({ stretches: JSON.stringify(runs.flatMap(stretchesOf)) });
      return rows.sort((one, other) => one.seq - other.seq);
    },

    /** The model's message that makes the call which this row answers, in a run whose rows begin at `from`. */
    madeBy({ seq, runOrdinal, step }: JournalRow, from: number): JournalRow | undefined {
      const isIt = and(eq(journal.runOrdinal, runOrdinal), eq(journal.step, step), eq(journal.kind, "assistant"));
      const before = and(gte(journal.seq, from), lt(journal.seq, seq), isIt);
      return db.select().from(journal).where(before).orderBy(desc(journal.seq)).limit(1).get();
    },

    /** When the model wrote a call of this run, where that is longer ago than its message can tell. */
    writtenAt(run: Lived, callId: string): number | undefined {
      const isIts = ({ meta }: JournalRow): boolean =>
        meta?.kind === "assistant" && meta.calls.some((each) => each.callId === callId);
      const at = this.ofRun(run, run.journalTo ?? undefined).find(isIts)?.createdAt;
      return at !== undefined && clock.now() - at > lateMs ? at : undefined;
    },

    /** The first row that names this id: of an event that a run took, of its message, a call or a call's message. */
    firstNaming(id: string): JournalRow | undefined {
      takeNames();
      const isIt = eq(journalNames.part, ownPart(id));
      const named = db.select(getTableColumns(journal)).from(journalNames);
      return named.innerJoin(journal, eq(journal.seq, journalNames.seq)).where(isIt).get();
    },

    after(seq: number, limit: number): JournalRow[] {
      return db.select().from(journal).where(gt(journal.seq, seq)).orderBy(asc(journal.seq)).limit(limit).all();
    },
  };
};
