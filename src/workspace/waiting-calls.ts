import { asc, eq, gt } from "drizzle-orm";
import type { Page, PageRequest } from "../protocol/rpc.ts";
import type { WaitingToolCall } from "../protocol/tool-call.ts";
import type { Database } from "../shared/database.ts";
import { pageOf, positionOf } from "./cursor.ts";
import { waitingCalls } from "./schema.ts";

/**
 * The calls of all agents that wait for a server to come and ask for them. Their agents are who knows; this only finds
 * them: an entry may be a moment late.
 */
export class WaitingCalls {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /** Told by the call's agent, whenever it changes. */
  note(call: WaitingToolCall, waits: boolean): void {
    const { toolCallId, agentId } = call;
    if (!waits) {
      this.#db.delete(waitingCalls).where(eq(waitingCalls.toolCallId, toolCallId)).run();
      return;
    }
    this.#db
      .insert(waitingCalls)
      .values({ toolCallId, agentId, call })
      .onConflictDoUpdate({ target: waitingCalls.toolCallId, set: { call } })
      .run();
  }

  /** Oldest first. */
  page({ limit, cursor }: PageRequest): Page<WaitingToolCall> {
    const after = positionOf(cursor);
    const rows = this.#db
      .select()
      .from(waitingCalls)
      .where(after === undefined ? undefined : gt(waitingCalls.position, after))
      .orderBy(asc(waitingCalls.position))
      .limit(limit + 1)
      .all();
    return pageOf(rows, limit, ({ call }) => call);
  }

  forgetAgent(agentId: string): void {
    this.#db.delete(waitingCalls).where(eq(waitingCalls.agentId, agentId)).run();
  }
}
