import { and, asc, count, eq } from "drizzle-orm";
import type { SharedBlockNote } from "../../../protocol/block-rpc.ts";
import type { Clock } from "../../../shared/clock.ts";
import { type Database, prepared, Remembered } from "../../../shared/database.ts";
import { ColloquyError } from "../../../shared/errors.ts";
import { maxSharedBlocks } from "../../bounds.ts";
import { sharedBlocks } from "./schema.ts";

/** A block of another agent, as far as this one has heard. */
export type SharedBlockRow = typeof sharedBlocks.$inferSelect;

export class SharedBlocks {
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #all = prepared(() =>
    this.#db.select().from(sharedBlocks).orderBy(asc(sharedBlocks.label), asc(sharedBlocks.ownerName)),
  );
  readonly #list = new Remembered(() => this.#all().all());

  constructor(db: Database, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
  }

  /** By label. */
  list(): SharedBlockRow[] {
    return this.#list.get();
  }

  forget(): void {
    this.#list.forget();
  }

  /** The database, to write to this table. */
  #writing(): Database {
    this.forget();
    return this.#db;
  }

  /**
   * The one with this label; of several, that of the agent named or with the id `from`. Throws `conflict` where that
   * leaves more than one.
   */
  find(label: string, from?: string): SharedBlockRow | undefined {
    const found = this.list().filter(
      (row) => row.label === label && (from === undefined || row.ownerId === from || row.ownerName === from),
    );
    if (found.length <= 1) return found[0];
    const owners = found.map(({ ownerName, ownerId }) => `${JSON.stringify(ownerName)} (${ownerId})`).join(", ");
    throw new ColloquyError("conflict", `several agents share "${label}" with you: say from which, ${owners}`);
  }

  /** Throws `limit_reached` past `maxSharedBlocks`. */
  note({ ownerId, label, ...told }: SharedBlockNote): void {
    const now = this.#clock.now();
    const isKnown = this.list().some((row) => row.ownerId === ownerId && row.label === label);
    const rows = this.#db.select({ rows: count() }).from(sharedBlocks).get()?.rows ?? 0;
    if (!isKnown && rows >= maxSharedBlocks) {
      throw new ColloquyError(
        "limit_reached",
        `maxSharedBlocks (${maxSharedBlocks}) are shared with that agent already`,
      );
    }
    this.#writing()
      .insert(sharedBlocks)
      .values({ ownerId, label, ...told, lastUsedAt: now, createdAt: now })
      .onConflictDoUpdate({ target: [sharedBlocks.ownerId, sharedBlocks.label], set: told })
      .run();
  }

  /** Writes what the owner says of the block, if it differs from the row. */
  refresh(row: SharedBlockRow, told: Pick<SharedBlockNote, "ownerName" | "type" | "permission">): void {
    if (row.ownerName === told.ownerName && row.type === told.type && row.permission === told.permission) return;
    this.note({ ownerId: row.ownerId, label: row.label, ...told });
  }

  pin(row: SharedBlockRow, pinned: boolean): void {
    this.#writing().update(sharedBlocks).set({ pinned }).where(this.#is(row.ownerId, row.label)).run();
  }

  drop(ownerId: string, label: string): void {
    this.#writing().delete(sharedBlocks).where(this.#is(ownerId, label)).run();
  }

  #is(ownerId: string, label: string) {
    return and(eq(sharedBlocks.ownerId, ownerId), eq(sharedBlocks.label, label));
  }
}
