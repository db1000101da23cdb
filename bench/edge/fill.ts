/**
 * Makes a space's log `messages` long by copies of its newest message. Posting them would leave it so, once everybody
 * who follows it has taken them. Answers the newest frame.
 */
export const fillLog = ({ sql }: DurableObjectStorage, messages: number): string => {
  sql.exec(
    `with recursive
       model as (select * from log where message_id is not null order by seq desc limit 1),
       copies(n) as (select 1 union all select n + 1 from copies where n < ?)
     insert into log (seq, type, entity_id, message_id, message_count, routing, frame)
     select seq + n, type, entity_id, substr(message_id, 1, length(message_id) - 8) || printf('%08d', n), message_count + n, routing,
       json_set(frame, '$.cursor', seq + n, '$.message.seq', seq + n, '$.message.id',
         substr(message_id, 1, length(message_id) - 8) || printf('%08d', n))
     from model, copies`,
    messages - 1,
  );
  sql.exec("update subscribers set cursor = (select max(seq) from log)");
  return sql.exec<{ frame: string }>("select frame from log order by seq desc limit 1").one().frame;
};

/** Leaves the newest message in an agent's inbox as one that wakes it, with nothing that would take it from there. */
export const leaveWaiting = ({ sql }: DurableObjectStorage, spaceName: string, frame: string): void => {
  sql.exec(
    `insert into inbox (event_id, type, data, root_id, wakes, received_at)
     select id, 'space_message', json_object('type', 'space_message', 'spaceName', ?, 'delivered', json_object(
       'message', json(message), 'root', json_object('id', id, 'kind', 'person'), 'triggerSource', 'every_message')), id, 1, 0
     from (select json_extract(?, '$.message') as message, json_extract(?, '$.message.id') as id)`,
    spaceName,
    frame,
    frame,
  );
};

/** A cycle's rows in the journal: its inbox message, and the agent's last words to itself. */
const rowsInCycle = 2;

/**
 * Gives a new agent `cycles` cycles, as living through them would have left them. They are compacted after each
 * `inWindow`, but for the last ones.
 */
export const fillCycles = ({ sql }: DurableObjectStorage, cycles: number, inWindow: number): void => {
  const counted = "with recursive n(i) as (select 1 union all select i + 1 from n where i < ?)";
  sql.exec(
    `${counted}
     insert into windows (id, instructions, toolset, summary, continuity, first_run, told_from, created_at)
     select i, 'IDENTITY:', json_object('messaging', config ->> 'messaging', 'tools', config -> 'tools',
         'toolRules', config -> 'toolRules', 'mcpListId', null),
       case when i > 1 then 'Cycles before.' end, 'consciousness', (i - 1) * ? + 1, (i - 1) * ? + 1, 0
     from n, agent`,
    Math.ceil(cycles / inWindow),
    inWindow,
    inWindow,
  );
  sql.exec(
    `${counted}
     insert into runs (ordinal, id, status, continuity, "trigger", events, roots, space_ids, window_id, journal_from,
       journal_to, told, kept, kept_before, silent_before, outcome, started_at, completed_at)
     select i, 'run_' || i, 'completed', 'consciousness', json_object('type', 'service', 'eventId', 'evt_' || i, 'eventCount', 1),
       '[]', '[]', '[]', (i - 1) / ? + 1, (i - 1) * ? + 1, i * ?, '{}', 1, i - 1, 0, 'silent', 0, 0
     from n`,
    cycles,
    inWindow,
    rowsInCycle,
    rowsInCycle,
  );
  sql.exec(
    `${counted}
     insert into journal (seq, run_ordinal, step, kind, content, meta, created_at)
     select (i - 1) * ? + 1, i, 0, 'inbox',
       json_object('role', 'user', 'content', 'INBOX (1 event): a question about the revenue of this region'),
       json_object('kind', 'inbox', 'lines', json_array()), 0
     from n`,
    cycles,
    rowsInCycle,
  );
  sql.exec(
    `${counted}
     insert into journal (seq, run_ordinal, step, kind, content, meta, created_at)
     select i * ?, i, 0, 'assistant', json_object('role', 'assistant', 'content', 'Read it, and had nothing to add.'),
       json_object('kind', 'assistant', 'text', '', 'calls', json_array(), 'windowId', (i - 1) / ? + 1,
         'firstCycle', (i - 1) / ? * ? + 1), 0
     from n`,
    cycles,
    rowsInCycle,
    inWindow,
    inWindow,
    inWindow,
  );
};
