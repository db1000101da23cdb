import { createCipheriv, createDecipheriv } from "node:crypto";
import { asc, eq, gt } from "drizzle-orm";
import type { Page, PageRequest } from "../protocol/rpc.ts";
import type { WaitingToolCall } from "../protocol/tool-call.ts";
import type { Database } from "../shared/database.ts";
import { createIds, deriveKey } from "../shared/ids.ts";
import { pageOf } from "../shared/page.ts";
import { type RingEnv, ringOf } from "../shared/secret-ring.ts";
import { waitingCalls } from "./schema.ts";

/** A cursor is one block of AES: the position in 16 digits. What was not made here opens to digits alone by no chance. */
const algorithm = "aes-256-ecb";

/**
 * Cursors that tell nothing of their positions, which count the calls of confidential spaces too (C19). One position always has
 * the same cursor.
 */
const createCursors = (env: RingEnv, workspaceId: string) => {
  // Somebody's own workspace, where they see all calls, tells nothing of another's cursors.
  const { first, secrets } = ringOf(env);
  const keyOf = (secret: string) => deriveKey(secret, `cursors of ${workspaceId}`);
  return {
    seal(position: string): string {
      const cipher = createCipheriv(algorithm, keyOf(first.secret), null).setAutoPadding(false);
      return cipher.update(Buffer.from(position.padStart(16, "0"))).toString("hex");
    },
    open(cursor: string): string {
      const texts = secrets.map(({ secret }) => {
        const decipher = createDecipheriv(algorithm, keyOf(secret), null).setAutoPadding(false);
        return cursor.length === 32 ? decipher.update(Buffer.from(cursor, "hex")).toString("latin1") : "";
      });
      const position = texts.find((text) => /^\d{16}$/.test(text));
      return position === undefined ? "none" : String(Number(position));
    },
  };
};

/**
 * The calls of all agents that wait for a server to come and ask for them. The agents know for certain; this only finds
 * the calls, and an entry may be a moment late.
 */
export const createWaitingCalls = (db: Database, env: RingEnv, workspaceId: () => string) => ({
  /** Told by the call's agent, whenever it changes. Answers whether it waits since now. */
  note(call: WaitingToolCall, waits: boolean): boolean {
    const { toolCallId, agentId } = call;
    const isIt = eq(waitingCalls.toolCallId, toolCallId);
    if (!waits) {
      db.delete(waitingCalls).where(isIt).run();
      return false;
    }
    const isNew = this.find(toolCallId) === undefined;
    db.insert(waitingCalls)
      .values({ toolCallId, agentId, call })
      .onConflictDoUpdate({ target: waitingCalls.toolCallId, set: { call } })
      .run();
    return isNew;
  },

  find: (toolCallId: string): WaitingToolCall | undefined =>
    db.select().from(waitingCalls).where(eq(waitingCalls.toolCallId, toolCallId)).get()?.call,

  /** Oldest first. With `openOnly` no page tells, by what it lacks, that a confidential space's calls wait (C19). */
  page({ openOnly, limit: wanted, cursor }: PageRequest & { openOnly?: boolean | undefined }): Page<WaitingToolCall> {
    const { position } = waitingCalls;
    const ids = createIds(ringOf(env).ids.secret);
    const cursors = createCursors(env, workspaceId());
    const rowsAfter = (from: number) => db.select().from(waitingCalls).where(gt(position, from)).orderBy(asc(position));
    const isTold = ({ toolCallId }: { toolCallId: string }): boolean =>
      !openOnly || !ids.isCompartment(ids.ownerOf("tc", toolCallId));
    const { items, nextCursor } = pageOf(
      { limit: wanted, ...(cursor !== undefined && { cursor: cursors.open(cursor) }) },
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
    return { items, nextCursor: nextCursor && cursors.seal(nextCursor) };
  },

  forgetAgent(agentId: string): void {
    db.delete(waitingCalls).where(eq(waitingCalls.agentId, agentId)).run();
  },
});
export type WaitingCalls = ReturnType<typeof createWaitingCalls>;
