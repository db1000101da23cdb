import { and, eq, isNull, lte, or, type Placeholder, sql } from "drizzle-orm";
import { inbox, roots } from "../schema.ts";

/** Conditions on rows of the inbox: which events may be taken, which ask for a run, and where they came from. */

/** The event may be taken now. */
export const ready = and(
  eq(inbox.status, "pending"),
  or(isNull(inbox.retryAt), lte(inbox.retryAt, sql.placeholder("now"))),
);
/**
 * The event is an answer to the agent, which always wakes it. An expired or late result is not one: a server that is
 * always late would make the agent ask for ever (B1).
 */
export const isAnswer = sql`(${inbox.type} = 'tool_result' and
  coalesce(json_extract(${inbox.data}, '$.expired'), json_extract(${inbox.data}, '$.late')) is null)`;
/** The event's root has woken the agent as often as it may, and the event is neither a retry nor an answer (B1). */
export const mutedBy = (wakes: number | Placeholder) =>
  sql`(${inbox.retryAt} is null and not ${isAnswer} and
  coalesce((select ${roots.wakes} from ${roots} where ${roots.id} = ${inbox.rootId}), 0) >= ${wakes})`;
export const mutedByRoot = mutedBy(sql.placeholder("maxWakes"));
/** The event came from this space, or is the result of a call that was made there. */
export const inSpace = sql`coalesce(json_extract(${inbox.data}, '$.delivered.message.spaceId'), json_extract(${inbox.data}, '$.activeSpaceId')) = ${sql.placeholder("spaceId")}`;
