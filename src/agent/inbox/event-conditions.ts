import { and, eq, isNull, lte, not, or, sql } from "drizzle-orm";
import { events, inbox } from "../schema.ts";

/** Conditions of queries on events, made once for all agents: making one takes longer than SQLite does. */

/** The newest place of all. */
export const newestSeq = sql<number>`max(coalesce((select max(seq) from inbox), 0), coalesce((select max(seq) from overheard), 0))`;

const beyondMost = sql`(select seq from overheard order by seq desc limit 1 offset ${sql.placeholder("most")})`;
const mostBytes = sql.placeholder("mostBytes");
const beyondBytes = sql`(select max(seq) from (
  select seq, sum(octet_length(data)) over (order by seq desc) as bytes from overheard
) where bytes > ${mostBytes})`;

/** The newest overheard event that lies beyond the bounds. A sum for each row takes long: it is made where the bytes are too many. */
export const newestBeyond = sql<number | null>`nullif(max(coalesce(${beyondMost}, 0),
  case when (select sum(octet_length(data)) from overheard) > ${mostBytes} then ${beyondBytes} else 0 end), 0)`;

/** `isAnswer` of rows. */
export const isAnswerRow = sql`(${inbox.type} = 'tool_result' and
  coalesce(json_extract(${inbox.data}, '$.expired'), json_extract(${inbox.data}, '$.late')) is null)`;

/** The event answers a question of the agent's, or tells who has not. */
export const answersQuestion = sql`coalesce(json_extract(data, '$.answers'), json_extract(data, '$.unanswered')) is not null`;

/** The event may be taken now. */
export const isReady = (from: typeof inbox | typeof events) =>
  and(eq(from.status, "pending"), or(isNull(from.retryAt), lte(from.retryAt, sql.placeholder("now"))));

/** The event came from this space, or is the result of a call that was made there. */
const isOfSpace = sql`coalesce(json_extract(${events.data}, '$.delivered.message.spaceId'), json_extract(${events.data}, '$.activeSpaceId')) = ${sql.placeholder("spaceId")}`;

export const isMessageOfSpace = and(eq(events.type, "space_message"), isOfSpace);

/** The place of a message in its space's log. */
export const messageSeq = sql<number>`json_extract(${events.data}, '$.delivered.message.seq')`;

/** The person who began what came of it. */
export const personOf = sql`coalesce(json_extract(data, '$.delivered.root.by'), json_extract(data, '$.root.by'))`;

/** Whether the event asks for a run, and its person has no run that waits for tokens. */
const isOfWaiting = sql`coalesce(${personOf}, '') in (select value from json_each(${sql.placeholder("waiting")}))`;
export const isReadyWaking = and(isReady(inbox), inbox.wakes, not(isOfWaiting));

export const isDead = eq(inbox.status, "dead");
export const isReadyEvent = isReady(events);
export const isReadyAnswer = and(isReadyEvent, answersQuestion);
const isOwn = sql`json_extract(data, '$.delivered.own') is not null`;
export const isReadyUnheeded = and(isReadyEvent, not(events.wakes), isOfSpace, not(isOwn));
/** Words of its own that were let out of a confidential space. */
export const isLetOut = sql`json_extract(data, '$.delivered.own') = 'let_out'`;
