import { and, eq, isNull, lte, not, or, sql } from "drizzle-orm";
import { events, inbox } from "../schema.ts";

/** What queries ask of events, made once for all agents: making it takes longer than SQLite does. */

/** The newest place of all. */
export const newestSeq = sql<number>`max(coalesce((select max(seq) from inbox), 0), coalesce((select max(seq) from overheard), 0))`;

/** The newest overheard event that lies beyond the bounds. */
export const newestBeyond = sql<number | null>`(select max(seq) from (
  select seq, row_number() over newest as place, sum(octet_length(data)) over newest as bytes
  from overheard window newest as (order by seq desc)
) where place > ${sql.placeholder("most")} or bytes > ${sql.placeholder("mostBytes")})`;

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
