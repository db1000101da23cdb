import { eq, sql } from "drizzle-orm";
import { type Database, prepared, Remembered } from "../../shared/database.ts";
import { subscribers } from "../schema.ts";

export type SubscriberRow = typeof subscribers.$inferSelect;
export type Place = Pick<SubscriberRow, "cursor" | "inside">;

/** The subscriber that is not a member: the workspace's index of spaces. */
export const indexSubscriber = "index";

/** The member that a subscriber is, or whose compartment it is. */
export const memberOf = ({ id, compartmentOf }: { id: string; compartmentOf?: string | null }): string =>
  compartmentOf ?? id;

const all = prepared((db) => db.select().from(subscribers));
const advance = prepared((db) =>
  db
    .update(subscribers)
    .set({
      cursor: sql`${sql.placeholder("cursor")}`,
      inside: sql`${sql.placeholder("inside")}`,
      failures: 0,
      retryAt: null,
    })
    .where(eq(subscribers.id, sql.placeholder("id"))),
);

/**
 * The subscribers of the log, each with its cursor: the agents that are members, those that have yet to hear that they
 * left, and endpoints. In a confidential space an agent is two: its open mind and its compartment.
 * And people, while they look or are owed something.
 *
 * Invariants
 * 1. All rows are read once and then kept as they are stored: this object is the table's only writer.
 * 2. Nobody changes a row that was handed out.
 */
export class Subscribers {
  readonly #db: Database;
  readonly #known: Remembered<Map<string, SubscriberRow>>;
  /** How far those have come whose rows tell less. */
  readonly #unstored = new Map<string, Place>();

  constructor(db: Database) {
    this.#db = db;
    const rows = () => all(db).all();
    this.#known = new Remembered(db, () => new Map(rows().map((row) => [row.id, row])));
  }

  find(id: string): SubscriberRow | undefined {
    return this.#known.get().get(id);
  }

  /** Those whose cursor has not come to `seq`. */
  behind(seq: number): SubscriberRow[] {
    return [...this.#known.get().values()].filter(({ cursor }) => cursor < seq);
  }

  anyAgentBut(agentId: string): boolean {
    for (const row of this.#known.get().values()) if (row.kind === "agent" && memberOf(row) !== agentId) return true;
    return false;
  }

  people(): SubscriberRow[] {
    return [...this.#known.get().values()].filter(({ kind }) => kind === "person");
  }

  anyPerson(): boolean {
    for (const { kind } of this.#known.get().values()) if (kind === "person") return true;
    return false;
  }

  /** How far all of this kind have come, each as `placeOf` says. */
  toldUpTo(of: SubscriberRow["kind"], placeOf: (subscriber: SubscriberRow) => number): number {
    const meant = [...this.#known.get().values()].filter(({ kind }) => kind === of);
    return Math.min(Number.MAX_SAFE_INTEGER, ...meant.map(placeOf));
  }

  endpoints(): SubscriberRow[] {
    return [...this.#known.get().values()].filter(({ kind }) => kind === "endpoint");
  }

  /** The endpoint names other events. */
  setEndpoint(id: string, endpoint: SubscriberRow["endpoint"]): void {
    this.#db.update(subscribers).set({ endpoint }).where(eq(subscribers.id, id)).run();
    this.#keep(id, { endpoint });
  }

  any(): boolean {
    return this.#known.get().size > 0;
  }

  /** Begins to follow after `cursor`; one that still follows (it left and came back) goes on from where it is. */
  insert(
    subscriber: Pick<SubscriberRow, "id" | "kind" | "cursor" | "inside"> &
      Partial<Pick<SubscriberRow, "compartmentOf" | "endpoint">>,
  ): void {
    if (this.find(subscriber.id)) return;
    const row: SubscriberRow = { compartmentOf: null, endpoint: null, ...subscriber, failures: 0, retryAt: null };
    this.#db.insert(subscribers).values(row).run();
    this.#known.get().set(row.id, row);
  }

  /** Moves the cursor; whatever failed before is forgotten. */
  advance(id: string, { cursor, inside }: Place): void {
    this.#unstored.delete(id);
    advance(this.#db).run({ id, cursor, inside: Number(inside) });
    this.#keep(id, { cursor, inside, failures: 0, retryAt: null });
  }

  /** As `advance`, in memory; `store` writes it down. A crash before that takes it back. */
  heard(id: string, { cursor, inside }: Place): void {
    this.#unstored.set(id, { cursor, inside });
    this.#keep(id, { cursor, inside, failures: 0, retryAt: null });
  }

  store(): void {
    for (const [id, place] of this.#unstored) this.advance(id, place);
  }

  fail(id: string, failures: number, retryAt: number): void {
    this.store();
    this.#db.update(subscribers).set({ failures, retryAt }).where(eq(subscribers.id, id)).run();
    this.#keep(id, { failures, retryAt });
  }

  remove(id: string): void {
    this.#unstored.delete(id);
    this.#db.delete(subscribers).where(eq(subscribers.id, id)).run();
    this.#known.get().delete(id);
  }

  /** When the first of those that failed is due. */
  nextRetry(): number | undefined {
    let next: number | undefined;
    for (const { retryAt } of this.#known.get().values()) {
      if (retryAt !== null && retryAt < (next ?? Number.POSITIVE_INFINITY)) next = retryAt;
    }
    return next;
  }

  #keep(id: string, changes: Partial<SubscriberRow>): void {
    const row = this.find(id);
    if (row) this.#known.get().set(id, { ...row, ...changes });
  }
}
