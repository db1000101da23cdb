import { asc, eq, gt } from "drizzle-orm";
import type { Page, PageRequest } from "../protocol/rpc.ts";
import type { WaitingToolCall } from "../protocol/tool-call.ts";
import type { Database } from "../shared/database.ts";
import { pageOf } from "./page.ts";
import { waitingCalls } from "./schema.ts";

/**
 * The calls of all agents that wait for a server to come and ask for them. The agents know for certain; this only finds
 * the calls, and an entry may be a moment late.
 */
export const createWaitingCalls = (db: Database) => ({
  /** Told by the call's agent, whenever it changes. */
  note(call: WaitingToolCall, waits: boolean): void {
    const { toolCallId, agentId } = call;
    const isIt = eq(waitingCalls.toolCallId, toolCallId);
    if (!waits) return void db.delete(waitingCalls).where(isIt).run();
    db.insert(waitingCalls)
      .values({ toolCallId, agentId, call })
      .onConflictDoUpdate({ target: waitingCalls.toolCallId, set: { call } })
      .run();
  },

  /** Oldest first. */
  page(request: PageRequest): Page<WaitingToolCall> {
    const { position } = waitingCalls;
    const rowsAfter = (from = 0) => db.select().from(waitingCalls).where(gt(position, from)).orderBy(asc(position));
    return pageOf(
      request,
      ({ from, limit }) => rowsAfter(from).limit(limit).all(),
      ({ call }) => call,
    );
  },

  forgetAgent(agentId: string): void {
    db.delete(waitingCalls).where(eq(waitingCalls.agentId, agentId)).run();
  },
});
