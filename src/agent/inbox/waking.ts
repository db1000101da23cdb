import { and, eq, isNull, lte, or, type Placeholder, sql } from "drizzle-orm";
import { inbox, roots } from "../schema.ts";

/** Which events of the inbox ask for a run, and where, as conditions on its rows. */

/** It may be taken. */
export const ready = and(
  eq(inbox.status, "pending"),
  or(isNull(inbox.retryAt), lte(inbox.retryAt, sql.placeholder("now"))),
);
/**
 * Somebody answered what the agent asked: that always wakes it. That nobody did is nobody's word, and a server that is
 * always late would have the agent ask again for ever (B1).
 */
export const isAnswer = sql`(${inbox.type} = 'tool_result' and
  coalesce(json_extract(${inbox.data}, '$.expired'), json_extract(${inbox.data}, '$.late')) is null)`;
/** A root has woken the agent as often as it may: its events ask for no run any more, but where they always do (B1). */
export const mutedBy = (wakes: number | Placeholder) =>
  sql`(${inbox.retryAt} is null and not ${isAnswer} and
  coalesce((select ${roots.wakes} from ${roots} where ${roots.id} = ${inbox.rootId}), 0) >= ${wakes})`;
export const mutedByRoot = mutedBy(sql.placeholder("maxWakes"));
/** It came from that space, or says what came of a call that was made there. */
export const inSpace = sql`coalesce(json_extract(${inbox.data}, '$.delivered.message.spaceId'), json_extract(${inbox.data}, '$.activeSpaceId')) = ${sql.placeholder("spaceId")}`;
