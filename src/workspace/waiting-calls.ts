import { asc, eq, gt } from "drizzle-orm";
import type { Page, PageRequest } from "../protocol/rpc.ts";
import type { WaitingToolCall } from "../protocol/tool-call.ts";
import type { Database } from "../shared/database.ts";
import type { Ids } from "../shared/ids.ts";
import { pageOf } from "./page.ts";
import { waitingCalls } from "./schema.ts";

/**
 * The calls of all agents that wait for a server to come and ask for them. The agents know for certain; this only finds
 * the calls, and an entry may be a moment late.
 */
export const createWaitingCalls = (db: Database, ids: Ids) => ({
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

  /** Oldest first. With `openOnly` no page tells, by what it lacks, that a confidential space's calls wait (C19). */
  page(request: PageRequest & { openOnly?: boolean | undefined }): Page<WaitingToolCall> {
    const { position } = waitingCalls;
    const rowsAfter = (from: number) => db.select().from(waitingCalls).where(gt(position, from)).orderBy(asc(position));
    const isTold = ({ toolCallId }: { toolCallId: string }): boolean =>
      !request.openOnly || !ids.isCompartment(ids.ownerOf("tc", toolCallId));
    return pageOf(
      request,
      ({ from = 0, limit }) => {
        const told: (typeof waitingCalls.$inferSelect)[] = [];
        for (let after: number | undefined = from; after !== undefined && told.length < limit; ) {
          const rows = rowsAfter(after).limit(limit).all();
          told.push(...rows.filter(isTold));
          after = rows.length < limit ? undefined : rows.at(-1)?.position;
        }
        return told.slice(0, limit);
      },
      ({ call }) => call,
    );
  },

  forgetAgent(agentId: string): void {
    db.delete(waitingCalls).where(eq(waitingCalls.agentId, agentId)).run();
  },
});
