/** One message of a bench's conversation, with its sender and its time. */
export type Line = { id: string; name: string; text: string; at: number };

/**
 * Appends messages to a space's log as posting them would, with everybody who follows it having taken them. They are
 * copies of its newest message, with other words, senders and times. Answers their ids, in order.
 */
export const fillConversation = ({ sql }: DurableObjectStorage, lines: Line[]): string[] => {
  sql.exec(
    `with
       model as (select * from log where message_id is not null order by seq desc limit 1),
       lines as (select key + 1 as n, value from json_each(?))
     insert into log (seq, type, entity_id, message_id, message_count, routing, frame)
     select seq + n, type, value ->> 'id', substr(message_id, 1, length(message_id) - 8) || printf('%08d', n),
       message_count + n, routing,
       json_set(frame, '$.cursor', seq + n, '$.message.seq', seq + n, '$.message.id',
         substr(message_id, 1, length(message_id) - 8) || printf('%08d', n), '$.message.text', value ->> 'text',
         '$.message.sender.id', value ->> 'id', '$.message.sender.name', value ->> 'name',
         '$.message.createdAt', value ->> 'at')
     from model, lines`,
    JSON.stringify(lines.map((line) => ({ ...line, at: new Date(line.at).toISOString() }))),
  );
  sql.exec("update subscribers set cursor = (select max(seq) from log)");
  return sql
    .exec<{ id: string }>("select message_id as id from log where message_id is not null order by seq")
    .toArray()
    .slice(-lines.length)
    .map(({ id }) => id);
};
