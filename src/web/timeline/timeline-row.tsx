import type { LiveSpace, SpaceState } from "../../client/index.ts";
import { awaited } from "./awaited.ts";
import { MessageRow } from "./message-row.tsx";
import { NoteRow } from "./note-row.tsx";
import { OutgoingRow } from "./outgoing-row.tsx";
import { nameOf } from "./presence.ts";
import type { Row } from "./rows.ts";
import { StreamRow } from "./stream-row.tsx";

type TimelineRowProps = { row: Row; state: SpaceState; live: LiveSpace | null; names: readonly string[] };

const repliedTo = (state: SpaceState, messageId: string | undefined): { name: string; text: string } | null => {
  const message = messageId === undefined ? undefined : state.messages.find((one) => one.id === messageId);
  return message ? { name: nameOf(state, message.sender.id, message.sender.name), text: message.text ?? "" } : null;
};

/** One row in the middle column, by its kind. */
export const TimelineRow = ({ row, state, live, names }: TimelineRowProps) => (
  <div className="timeline-row">
    <RowContent {...{ row, state, live, names }} />
  </div>
);

const RowContent = ({ row, state, live, names }: TimelineRowProps) => {
  switch (row.kind) {
    case "message": {
      const { message, opensDay, opensGroup, opensUnread, readers } = row;
      const senderName = nameOf(state, message.sender.id, message.sender.name);
      const replied = repliedTo(state, message.replyTo);
      const told = { message, senderName, names, replied, awaited: awaited(message, state), readers };
      return <MessageRow {...told} {...{ opensDay, opensGroup, opensUnread }} />;
    }
    case "stream": {
      const { stream, opensGroup } = row;
      const member = state.members.find((one) => one.id === stream.entityId);
      const sender = { id: stream.entityId, name: member?.name ?? "An agent", type: member?.type ?? "agent" } as const;
      return <StreamRow {...{ stream, sender, names, opensGroup }} />;
    }
    case "outgoing":
      return (
        <OutgoingRow
          outgoing={row.outgoing}
          you={state.you ?? { id: "", name: "You" }}
          names={names}
          opensGroup={row.opensGroup}
          isConnected={state.connection.status === "open"}
          onRetry={(clientKey) => live?.retry(clientKey)}
          onDiscard={(clientKey) => live?.discard(clientKey)}
        />
      );
    case "note": {
      const { note } = row;
      const name = note.kind === "unrouted" ? "The router" : nameOf(state, note.entityId, "An agent");
      return <NoteRow note={note} name={name} />;
    }
  }
};
