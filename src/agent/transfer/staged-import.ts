import { eq, sql } from "drizzle-orm";
import type { ExportedHead, ImportReport, RowKind } from "../../protocol/exported-agent.ts";
import type { ImportedRow, ImportName } from "../../protocol/transfer-rpc.ts";
import type { Clock } from "../../shared/clock.ts";
import type { Database } from "../../shared/database.ts";
import { ColloquyError } from "../../shared/errors.ts";
import type { Ids } from "../../shared/ids.ts";
import type { Timers } from "../../timers/timers.ts";
import { importAbandonedMs, importIdleMs } from "../bounds.ts";
import { blockVersions } from "../memory/blocks/schema.ts";
import { loadLoro } from "../memory/documents/loro.ts";
import { archival } from "../schema.ts";
import { checkBlocks } from "./check-blocks.ts";
import { checkHistory, linkRuns } from "./check-history.ts";
import { type KindStore, unfit } from "./kind-store.ts";
import { kindStores } from "./kind-stores.ts";
import { imports } from "./schema.ts";

/**
 * An import under way, in the object of the agent that it makes.
 *
 * Invariants
 * 1. Until it is complete the table `agent` is empty: the object is no agent, whatever else it holds.
 * 2. The timer `import` is set from the first row on until the import is complete or deleted.
 * 3. Only the try that began it last adds to it; nothing is added once it was found to fit together.
 */
export const importTimer = "import";
export type ImportRow = typeof imports.$inferSelect;

type Needed = { db: Database; clock: Clock; timers: Timers; ids: Ids; transaction<T>(work: () => T): T };

/** Two tries at a time would mix their rows. */
export const underWay = (): ColloquyError =>
  new ColloquyError("idempotency_in_progress", "The first request with this key is under way: try again soon.");

export class StagedImport {
  readonly #needed: Needed;

  constructor(needed: Needed) {
    this.#needed = needed;
  }

  find(): ImportRow | undefined {
    return this.#needed.db.select().from(imports).get();
  }

  /** Whether a try has added to it lately. */
  isLively(): boolean {
    const row = this.find();
    return row !== undefined && row.completedAt === null && row.touchedAt + importIdleMs > this.#needed.clock.now();
  }

  begin(agentId: string, { workspaceId, token }: ImportName): void {
    const { db, clock, transaction } = this.#needed;
    transaction(() => {
      if (this.find()) throw underWay();
      db.insert(imports).values({ id: 1, workspaceId, agentId, token, touchedAt: clock.now() }).run();
      this.#arm();
    });
  }

  /** Stores all of these rows or none. Throws `invalid_request` for a row that is there already. */
  add(name: ImportName, rows: ImportedRow[]): void {
    const { db, ids, transaction } = this.#needed;
    transaction(() => {
      const { agentId, shares } = this.#open(name);
      for (const { kind, row, at } of rows) {
        // The kind of a row says which store takes it.
        const store: KindStore<RowKind> = kindStores[kind];
        if (!store.insert(db, row, { ids, agentId })) throw unfit(at, `repeats a row of the kind ${kind}`);
      }
      const more = rows.filter(({ kind }) => kind === "share").length;
      this.#touch({ shares: shares + more });
    });
  }

  /** Checks that all rows fit together, and makes this agent the author of what the old one wrote and archived. */
  async prepare(name: ImportName, { exportedAt, agent }: ExportedHead): Promise<void> {
    const { db, clock, transaction } = this.#needed;
    this.#open(name);
    this.#touch();
    checkHistory(db, clock.now());
    await checkBlocks(db, loadLoro);
    transaction(() => {
      const { agentId, shares } = this.#open(name);
      linkRuns(db);
      db.update(blockVersions)
        .set({ author: `agent:${agentId}` })
        .where(eq(blockVersions.author, `agent:${agent.id}`))
        .run();
      db.update(archival)
        .set({ source: sql`json_set(${archival.source}, '$.authorId', ${agentId})` })
        .where(sql`json_extract(${archival.source}, '$.authorId') = ${agent.id}`)
        .run();
      const counts = db.get<ImportReport["counts"]>(sql`select
        (select count(*) from memories) as memories, (select count(*) from goals) as goals,
        (select count(*) from plans) as plans, (select count(*) from runs) as runs,
        (select count(*) from blocks) as blocks, (select count(*) from archival) as archival`);
      const { to } = db.get<{ to: number }>(sql`select coalesce(max(seq), 0) as "to" from journal`);
      const report = { from: { agentId: agent.id, exportedAt }, counts, left: agent.left, shares };
      this.#touch({ head: agent, report, journalUpTo: to });
    });
  }

  /** It is an agent from now on. Belongs in the transaction that makes it one. */
  complete(): void {
    const { db, clock, timers } = this.#needed;
    db.update(imports).set({ head: null, completedAt: clock.now() }).run();
    timers.clear(importTimer);
  }

  /** The directory could not be asked: it is asked again later. */
  postpone(): void {
    this.#needed.timers.set(importTimer, this.#needed.clock.now() + importIdleMs);
  }

  /** The row of this very try. Throws `gone`. */
  #open({ workspaceId, token }: ImportName): ImportRow {
    const row = this.find();
    if (row?.token === token && row.workspaceId === workspaceId && row.head === null && row.completedAt === null) {
      return row;
    }
    throw new ColloquyError("gone", "this import was given up, or begun anew: send the document again");
  }

  #touch(changed: Partial<ImportRow> = {}): void {
    this.#needed.db
      .update(imports)
      .set({ ...changed, touchedAt: this.#needed.clock.now() })
      .run();
    this.#arm();
  }

  #arm(): void {
    this.#needed.timers.set(importTimer, this.#needed.clock.now() + importAbandonedMs);
  }
}
