import { asc, eq, gt, type SQL, sql } from "drizzle-orm";
import type { LoroDoc } from "loro-crdt/web";
import * as z from "zod";
import { maxBlockCharacters } from "../../protocol/block-schema.ts";
import { callsIn } from "../../protocol/exported-history.ts";
import type { Database } from "../../shared/database.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { unsoundness } from "../../shared/sound-json.ts";
import { breathe } from "../../shared/timeouts.ts";
import {
  maxArchivalEntries,
  maxBlocks,
  maxDonePlans,
  maxForeignReads,
  maxGoals,
  maxMemories,
  maxMemoriesCharacters,
  maxPlanAheadMs,
  maxPlans,
} from "../bounds.ts";
import { createBlockHistory } from "../memory/blocks/block-history.ts";
import { blocks, blockVersions } from "../memory/blocks/schema.ts";
import { checkBlockSchema, sizeOf } from "../memory/documents/check-content.ts";
import { contentAt, hasState, loadLoro, stateOf } from "../memory/documents/document.ts";
import { render, renderingRules } from "../memory/documents/render.ts";
import { nextCronTime } from "../plans/recurrence.ts";
import { type PastRun, past } from "../runs.ts";
import { journal, plans, runs } from "../schema.ts";

/** Checks that the rows of an import fit together. Throws `invalid_request` with the row that does not. */

/** The refusal of an import: where in the document, and why. */
export const unfit = (path: string, message: string): ColloquyError =>
  new ColloquyError("invalid_request", `In the body: ${path} ${message}.`, { issues: [{ path, message }] });

/** A row that one of these finds contradicts the rest of the document: `kind` and `at` name it. */
const contradictions: { [message: string]: SQL } = {
  "must be counted 1, 2, 3 … without a gap": sql`
    select 'run' as kind, max(ordinal) as at from runs having max(ordinal) <> count(*)`,
  "names a window that is not there": sql`
    select 'run' as kind, ordinal as at from runs where window_id not in (select id from windows) limit 1`,
  "must end in the journal after it began there": sql`
    select 'run' as kind, ordinal as at from runs where journal_to < journal_from limit 1`,
  "is of a timeline, which keeps no cycles": sql`
    select 'run' as kind, ordinal as at from runs where kept and continuity <> 'consciousness' limit 1`,
  "must begin in the journal after the cycle before it has ended": sql`
    select 'run' as kind, ordinal as at from (
      select ordinal, journal_from, lag(journal_to) over (order by ordinal) as before
      from runs where continuity = 'consciousness'
    ) where journal_from <= before limit 1`,
  "must end where the journal does, or before": sql`
    select 'run' as kind, ordinal as at from runs
      where journal_to > (select coalesce(max(seq), 0) from journal) + (not kept) limit 1`,
  "is not where its run, whose cycle is kept, has its rows": sql`
    select 'journal' as kind, seq as at from journal join runs on ordinal = run_ordinal
      where kept and seq not between journal_from and journal_to limit 1`,
  "is of a run that is not there": sql`
    select 'journal' as kind, seq as at from journal where run_ordinal not in (select ordinal from runs) limit 1`,
  "begins after the last run": sql`
    select 'window' as kind, id as at from windows
      where max(first_run, told_from) > (select coalesce(max(ordinal), 0) + 1 from runs) limit 1`,
  "is of runs that are not there": sql`
    select 'summary' as kind, subject as at from summaries
      where subject = 'cycles' and up_to > (select coalesce(max(ordinal), 0) from runs) limit 1`,
};

const bounds: { [name: string]: [most: number, amount: SQL] } = {
  maxMemories: [maxMemories, sql`select count(*) as amount from memories`],
  maxMemoriesCharacters: [maxMemoriesCharacters, sql`select coalesce(sum(length(value)), 0) as amount from memories`],
  maxGoals: [maxGoals, sql`select count(*) as amount from goals`],
  maxPlans: [maxPlans, sql`select count(*) as amount from plans where status = 'active'`],
  maxDonePlans: [maxDonePlans, sql`select count(*) as amount from plans where status <> 'active'`],
  maxArchivalEntries: [maxArchivalEntries, sql`select count(*) as amount from archival`],
  maxBlocks: [maxBlocks, sql`select count(*) as amount from blocks`],
};

const checkPlans = (db: Database, now: number): void => {
  for (const { id, cron, timezone, dueAt, status } of db.select().from(plans).all()) {
    const refused = (message: string) => unfit(`plan ${id}`, message);
    if (dueAt > now + maxPlanAheadMs) throw refused("is due later than any plan may be");
    if (cron === null || status !== "active") continue;
    try {
      nextCronTime(cron, timezone ?? undefined, now);
    } catch (error) {
      if (error instanceof ColloquyError) throw refused(`has a time that cannot be kept: ${error.message}`);
      throw error;
    }
  }
};

const rowsAtATime = 50;

/** Rows in order, a few in memory at a time. `read` answers those after a place. */
const inOrder = function* <Row>(read: (after: number) => Row[], placeOf: (row: Row) => number): Generator<Row> {
  for (let rows = read(0), last = rows.at(-1); last; rows = read(placeOf(last)), last = rows.at(-1)) yield* rows;
};

/** Each call has its result: a provider refuses a conversation in which one is missing. */
const checkCalls = (db: Database): void => {
  const open = new Map<string, number>();
  const messagesAfter = (after: number) =>
    db
      .select({ seq: journal.seq, kind: journal.kind, content: journal.content })
      .from(journal)
      .innerJoin(runs, eq(runs.ordinal, journal.runOrdinal))
      .where(sql`${gt(journal.seq, after)} and ${runs.kept} and ${journal.kind} <> 'call'`)
      .orderBy(asc(journal.seq))
      .limit(rowsAtATime)
      .all();
  for (const { seq, kind, content } of inOrder(messagesAfter, (row) => row.seq)) {
    const [waiting] = open.values();
    if (waiting !== undefined && kind !== "result") {
      throw unfit(`journal ${waiting}`, "makes a call whose result does not follow it");
    }
    const calls = callsIn(content);
    for (const id of calls.answered) {
      if (!open.delete(id)) throw unfit(`journal ${seq}`, "answers a call that nobody made");
    }
    for (const id of calls.made) {
      if (open.has(id)) throw unfit(`journal ${seq}`, "makes a call twice");
      open.set(id, seq);
    }
  }
  const [seq] = open.values();
  if (seq !== undefined) throw unfit(`journal ${seq}`, "makes a call whose result is not there");
};

export const checkHistory = (db: Database, now: number): void => {
  for (const [message, find] of Object.entries(contradictions)) {
    const found = db.get<{ kind: string; at: number | string } | undefined>(find);
    if (found) throw unfit(`${found.kind} ${found.at}`, message);
  }
  for (const [name, [most, counted]] of Object.entries(bounds)) {
    const { amount } = db.get<{ amount: number }>(counted);
    if (amount > most) throw new ColloquyError("limit_reached", `${name} is ${most}; the import has ${amount}`);
  }
  checkPlans(db, now);
  checkCalls(db);
};

/** Sets what each run knows of the runs before it. Belongs in a transaction. */
export const linkRuns = (db: Database): void => {
  let before: PastRun | undefined;
  const runsAfter = (ordinal: number) =>
    db.select().from(runs).where(gt(runs.ordinal, ordinal)).orderBy(asc(runs.ordinal)).limit(rowsAtATime).all();
  for (const row of inOrder(runsAfter, ({ ordinal }) => ordinal)) {
    const link = past(before);
    db.update(runs).set(link).where(eq(runs.ordinal, row.ordinal)).run();
    before = { ...row, ...link };
  }
};

type BlockRow = typeof blocks.$inferSelect;
type VersionRow = { version: number; state: string };

const State = z.array(z.strictObject({ peer: z.string().regex(/^\d{1,20}$/), counter: z.int().min(0) }));

const wordsOf = (error: unknown): string => (error instanceof Error ? error.message : String(error)).slice(0, 200);

/** The changes that a state names, sorted. Undefined where the text is no state. */
const headsOf = (state: string): string | undefined => {
  try {
    return State.parse(JSON.parse(state))
      .map(({ peer, counter }) => `${peer}:${counter}`)
      .sort()
      .join();
  } catch {
    return undefined;
  }
};

/** The versions to read: all where they are few, else the oldest and the newest, since reading an old one is slow. */
const readVersions = (versions: VersionRow[]): VersionRow[] =>
  versions.length <= maxForeignReads
    ? versions
    : [...versions.slice(0, maxForeignReads / 2), ...versions.slice(-maxForeignReads / 2)];

const checkVersions = ({ version, snapshotVersion }: BlockRow, versions: VersionRow[], doc: LoroDoc): void => {
  const [first] = versions;
  const isInOrder = versions.every((each, index) => each.version === (first?.version ?? 0) + index);
  if (!isInOrder || versions.at(-1)?.version !== version) {
    throw new Error(`its versions must follow each other, up to ${version}`);
  }
  if (snapshotVersion > version) throw new Error("its snapshot is newer than its newest version");
  for (const { version: each, state } of versions) {
    if (headsOf(state) === undefined || !hasState(doc, state))
      throw new Error(`its document never was at version ${each}`);
  }
  if (headsOf(versions.at(-1)?.state ?? "") !== headsOf(stateOf(doc))) {
    throw new Error("its document holds more than its newest version");
  }
};

/** The text that a block shows. Throws what is wrong with the block. */
const renderedOf = (block: BlockRow, versions: VersionRow[], doc: LoroDoc): string => {
  const { schema } = block;
  checkBlockSchema(schema);
  checkVersions(block, versions, doc);
  for (const { state } of readVersions(versions)) {
    const value = contentAt(doc, schema, state);
    const issue = unsoundness(value);
    if (issue) throw new Error(`what it holds ${issue.message}`);
    // A block's limit may have been lowered since; no content is larger than the largest limit.
    if (sizeOf(schema, value) > 2 * maxBlockCharacters)
      throw new Error(`it holds more than maxBlockCharacters (${maxBlockCharacters})`);
  }
  return render(schema, contentAt(doc, schema, stateOf(doc)));
};

/** Opens every document of an import, one at a time, and stores what it shows. Throws `invalid_request` with the block that is wrong. */
export const checkBlocks = async (db: Database): Promise<void> => {
  const all = db.select().from(blocks).orderBy(asc(blocks.id)).all();
  if (all.length === 0) return;
  const loro = await loadLoro();
  const history = createBlockHistory(db);
  for (const block of all) {
    const versions = db
      .select({ version: blockVersions.version, state: blockVersions.state })
      .from(blockVersions)
      .where(eq(blockVersions.blockId, block.id))
      .orderBy(asc(blockVersions.version))
      .all();
    let doc: LoroDoc | undefined;
    try {
      doc = history.openForeign(loro, block.id);
      const rendered = renderedOf(block, versions, doc);
      db.update(blocks).set({ rendered, renderedBy: renderingRules }).where(eq(blocks.id, block.id)).run();
    } catch (error) {
      throw unfit(`block ${block.label}`, `cannot be taken: ${wordsOf(error)}`);
    } finally {
      doc?.free();
    }
    await breathe();
  }
};
