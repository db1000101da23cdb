import type { AgentConfig } from "../protocol/agent.ts";
import type { Clock } from "../shared/clock.ts";
import { type Database, prepared } from "../shared/database.ts";
import { ColloquyError } from "../shared/errors.ts";
import type { Failure } from "./records.ts";
import { agent } from "./schema.ts";

/**
 * Who this agent is: its one row.
 *
 * Invariants
 * 1. The row is read once and kept until it is written: this object is its only writer. What was read in a
 *    transaction that is rolled back must be forgotten (`assemble.ts`).
 * 2. Nobody changes a row that was handed out.
 */
export type AgentRow = typeof agent.$inferSelect;

export class Identity {
  readonly #db: Database;
  readonly #clock: Clock;
  #known: AgentRow | undefined;
  readonly #row = prepared(() => this.#db.select().from(agent).prepare());

  constructor(db: Database, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
  }

  create(id: string, workspaceId: string, config: AgentConfig): AgentRow {
    const now = this.#clock.now();
    return this.#db
      .insert(agent)
      .values({ id, workspaceId, config, createdAt: now, updatedAt: now, secrets: {} })
      .returning()
      .get();
  }

  find(): AgentRow | undefined {
    this.#known ??= this.#row().get();
    return this.#known;
  }

  /** Throws `not_found` for an object that is no agent. */
  get(): AgentRow {
    const row = this.find();
    if (!row) throw new ColloquyError("not_found", "there is no such agent");
    return row;
  }

  update(changes: Partial<Omit<AgentRow, "id" | "workspaceId" | "createdAt">>): void {
    this.forget();
    this.#db.update(agent).set(changes).run();
  }

  /** The row is read anew when it is asked for next. */
  forget(): void {
    this.#known = undefined;
  }

  noteError(error: Failure): void {
    this.update({ lastError: { ...error, at: this.#clock.now() } });
  }
}
