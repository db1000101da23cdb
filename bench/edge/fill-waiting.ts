/**
 * Copies an agent's newest run, which waits for people, many times. All its rows are copied, in the agent and in the
 * space that shows its call. Copies are never answered: their ids are no ids.
 */
type Sql = DurableObjectStorage["sql"];

/** The last digits of an id, counted on. */
const counted = (id: string): string => `substr(${id}, 1, length(${id}) - 8) || printf('%08d', n)`;

/** Copies the rows of `table` that `where` names; `changed` says what is otherwise in copy `n`, from 1 on. */
const copy = (sql: Sql, table: string, where: string, changed: Record<string, string>, copies: number): void => {
  const columns = sql.exec(`select * from ${table} limit 0`).columnNames;
  const values = columns.map((column) => changed[column] ?? `"${column}"`);
  sql.exec(
    `with recursive copies(n) as (select 1 union all select n + 1 from copies where n < ${copies})
     insert into ${table} (${columns.map((column) => `"${column}"`).join(", ")})
     select ${values.join(", ")} from ${table}, copies where ${where}`,
  );
};

const one = (sql: Sql, query: string): Record<string, SqlStorageValue> => sql.exec(query).one();

/** In the space: the newest message shows the call. Answers the newest place in its log. */
export const fillShown = ({ sql }: DurableObjectStorage, copies: number): number => {
  const { seq } = one(sql, "select max(seq) as seq from tool_calls");
  const { newest, messages } = one(sql, "select max(seq) as newest, max(message_count) as messages from log");
  const at = `${Number(newest)} + n`;
  const call = (json: string, message: string): string =>
    `json_set(${json}, '${message}.seq', ${at}, '${message}.id', ${counted(`json_extract(${json}, '${message}.id')`)},
      '${message}.toolCall.id', ${counted(`json_extract(${json}, '${message}.toolCall.id')`)})`;
  const logged = {
    seq: at,
    message_id: counted("message_id"),
    message_count: `${Number(messages)} + n`,
    frame: `json_set(${call("frame", "$.message")}, '$.cursor', ${at})`,
  };
  copy(sql, "log", `seq = ${Number(seq)}`, logged, copies);
  const shown = { seq: at, updated_seq: at, message: call("message", "$") };
  copy(sql, "tool_calls", `seq = ${Number(seq)}`, shown, copies);
  sql.exec("update subscribers set cursor = (select max(seq) from log)");
  return Number(newest) + copies;
};

/** In the agent, whose cursor in its one space moves on to what the space shows now. */
export const fillWaiting = ({ sql }: DurableObjectStorage, copies: number, cursor: number): void => {
  const run = one(
    sql,
    "select ordinal, journal_from, json_extract(events, '$[0]') as event from runs order by ordinal desc limit 1",
  );
  const [ordinal, from, event] = [Number(run.ordinal), Number(run.journal_from), Number(run.event)];
  const { rows } = one(sql, `select count(*) as rows from journal where run_ordinal = ${ordinal}`);
  const { callId } = one(sql, `select call_id as callId from calls where run_ordinal = ${ordinal}`);
  const place = `${from} + n * ${Number(rows)}`;
  const renamed = (json: string): string => `replace(${json}, '${callId}', ${counted(`'${callId}'`)})`;
  const next = "ordinal + n";
  const rests = `json_set(rests, '$[0].from', json_extract(rests, '$[0].from') + n * ${Number(rows)})`;
  const { newest } = one(sql, "select max(seq) as newest from inbox");
  const begun = {
    ordinal: next,
    id: counted("id"),
    events: `json_array(${Number(newest)} + n)`,
    journal_from: place,
    rests,
  };
  copy(sql, "runs", `ordinal = ${ordinal}`, begun, copies);
  const taken = { seq: `${Number(newest)} + n`, event_id: counted("event_id") };
  copy(sql, "inbox", `seq = ${event}`, taken, copies);
  const lived = {
    seq: `seq + n * ${Number(rows)}`,
    run_ordinal: "run_ordinal + n",
    content: renamed("content"),
    meta: renamed("meta"),
  };
  copy(sql, "journal", `run_ordinal = ${ordinal}`, lived, copies);
  copy(
    sql,
    "calls",
    `run_ordinal = ${ordinal}`,
    { run_ordinal: "run_ordinal + n", call_id: counted("call_id") },
    copies,
  );
  sql.exec("update spaces set cursor = ?", cursor);
};
