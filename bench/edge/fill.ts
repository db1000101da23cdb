/**
 * Makes the log of a space `messages` long by copies of its newest message, as posting them would have left it, and
 * everybody who follows it having taken them. Answers the newest frame.
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
