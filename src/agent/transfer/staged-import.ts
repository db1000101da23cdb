import { eq, max, sql } from "drizzle-orm";
import type { ImportName } from "../../protocol/transfer-rpc.ts";
import {
  type CarriedHead,
  type CarriedItem,
  type CarriedItems,
  type CarriedList,
  carriedLists,
  type ExportEnvelope,
  type ImportReport,
} from "../../protocol/exported-agent.ts";
import type { Clock } from "../../shared/clock.ts";
import type { Database } from "../../shared/database.ts";
import { ColloquyError } from "../../shared/errors.ts";
import type { Ids } from "../../shared/ids.ts";
import type { Timers } from "../../timers/timers.ts";
import { importAbandonedMs, importIdleMs } from "../bounds.ts";
import { blockVersions } from "../memory/blocks/schema.ts";
import { loadLoro } from "../memory/documents/loro.ts";
import { archival } from "../memory/search/schema.ts";
import { journal } from "../schema.ts";
import { unfit } from "./kind-store.ts";
import { checkBlocks } from "./check-blocks.ts";
import { checkLife, linkRuns } from "./check-history.ts";
import { journalFault } from "./journal-shape.ts";
import { lists } from "./kind-stores.ts";
import { imports } from "./schema.ts";

/**
 * An import under way, in the object of the agent that comes of it.
 *
 * Invariants
 * 1. Until it is complete the table `agent` is empty: the object is no agent, whatever else it holds.
 * 2. The timer `import` is set from the first row on until the import is complete or put away.
 * 3. Only the try that began it last adds to it; nothing is added once it was found to fit together.
 */
export const importTimer = "import";
export type ImportRow = typeof imports.$inferSelect;

type Around = { db: Database; clock: Clock; timers: Timers; ids: Ids; transaction<T>(work: () => T): T };

const gone = (): ColloquyError =>
  new ColloquyError("gone", "this import was given up, or begun anew: send the document again");

/** Two tries at a time would be one agent of two halves. */
export const underWay = (): ColloquyError =>
  new ColloquyError("idempotency_in_progress", "The first request with this key is under way: try again soon.");

export class Imports {
  readonly #around: Around;

  constructor(around: Around) {
    this.#around = around;
  }

  find(): ImportRow | undefined {
    return this.#around.db.select().from(imports).get();
  }

  /** Whether somebody has gone on with it lately. */
  isLively(): boolean {
    const row = this.find();
    return row !== undefined && row.completedAt === null && row.touchedAt + importIdleMs > this.#around.clock.now();
  }

  begin(agentId: string, { workspaceId, token }: ImportName): void {
    const { db, clock, transaction } = this.#around;
    transaction(() => {
      if (this.find()) throw underWay();
      db.insert(imports).values({ id: 1, workspaceId, agentId, token, touchedAt: clock.now() }).run();
      this.#arm();
    });
  }

  /** All or none of these. Throws `invalid_request` for what is there twice, or is no row of its list. */
  take(name: ImportName, items: CarriedItems): void {
    this.#around.transaction(() => {
      const { agentId } = this.#open(name);
      for (const row of items.journal ?? []) {
        const fault = journalFault(row);
        if (fault !== undefined) throw unfit(`agent.journal (${row.seq})`, fault);
      }
      for (const list of carriedLists) this.#write(list, items[list] ?? [], agentId);
      if ((items.shares ?? []).length > 0) this.#countShares(items.shares?.length ?? 0);
      this.#touch();
    });
  }

  #write<List extends CarriedList>(list: List, items: CarriedItem<List>[], agentId: string): void {
    if (items.length === 0) return;
    const { db, ids } = this.#around;
    const write = lists[list].writer(db, { ids, agentId });
    for (const item of items) {
      if (!write(item)) throw unfit(`agent.${list} (${nameOf(item)})`, "is there twice");
    }
  }

  /** All is there: makes sure that it fits together, and of what came as another's what is the agent's own now. */
  async prepare(name: ImportName, envelope: ExportEnvelope, head: CarriedHead): Promise<void> {
    const { db, clock, transaction } = this.#around;
    this.#open(name);
    this.#touch();
    checkLife(db, clock.now());
    await checkBlocks(db, loadLoro);
    transaction(() => {
      const { agentId, shares } = this.#open(name);
      linkRuns(db);
      db.update(blockVersions)
        .set({ author: `agent:${agentId}` })
        .where(eq(blockVersions.author, `agent:${head.id}`))
        .run();
      db.update(archival)
        .set({ source: sql`json_set(${archival.source}, '$.authorId', ${agentId})` })
        .where(sql`json_extract(${archival.source}, '$.authorId') = ${head.id}`)
        .run();
      const journalUpTo =
        db
          .select({ to: max(journal.seq) })
          .from(journal)
          .get()?.to ?? 0;
      const report = this.#report(envelope, head, shares);
      db.update(imports).set({ envelope, head, report, journalUpTo, touchedAt: clock.now() }).run();
      this.#arm();
    });
  }

  #report({ exportedAt }: ExportEnvelope, { id: agentId, left }: CarriedHead, shares: number): ImportReport {
    const { db } = this.#around;
    const rows = (table: string): number =>
      db.get<{ rows: number }>(sql`select count(*) as rows from ${sql.identifier(table)}`).rows;
    return {
      from: { agentId, exportedAt },
      counts: {
        memories: rows("memories"),
        goals: rows("goals"),
        plans: rows("plans"),
        runs: rows("runs"),
        blocks: rows("blocks"),
        archival: rows("archival"),
      },
      left,
      shares,
    };
  }

  /** It is an agent from now on. Belongs in the transaction that makes it one. */
  complete(): void {
    const { db, clock, timers } = this.#around;
    db.update(imports).set({ head: null, completedAt: clock.now() }).run();
    timers.clear(importTimer);
  }

  /** It is not known yet whether it counts: it is asked again later. */
  postpone(): void {
    this.#around.timers.set(importTimer, this.#around.clock.now() + importIdleMs);
  }

  /** The row of this very try. Throws `gone`. */
  #open({ workspaceId, token }: ImportName): ImportRow {
    const row = this.find();
    if (row?.token !== token || row.workspaceId !== workspaceId || row.head !== null || row.completedAt !== null) {
      throw gone();
    }
    return row;
  }

  #touch(): void {
    this.#around.db.update(imports).set({ touchedAt: this.#around.clock.now() }).run();
    this.#arm();
  }

  #countShares(more: number): void {
    this.#around.db
      .update(imports)
      .set({ shares: sql`${imports.shares} + ${more}` })
      .run();
  }

  #arm(): void {
    this.#around.timers.set(importTimer, this.#around.clock.now() + importAbandonedMs);
  }
}

/** What people find an item by. */
const nameOf = (item: object): string => {
  for (const name of ["key", "id", "label", "ordinal", "seq", "subject"]) {
    if (name in item) return String(Object.entries(item).find(([key]) => key === name)?.[1]);
  }
  return "";
};
