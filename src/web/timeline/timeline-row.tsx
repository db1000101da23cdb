import type { LiveSpace, SpaceState } from "../../client/index.ts";
import { awaited } from "./awaited.ts";
import { MessageRow, type RowActions } from "./message-row.tsx";
import { NoteRow } from "./note-row.tsx";
import { OutgoingRow } from "./outgoing-row.tsx";
import { nameOf } from "./presence.ts";
import { quotedIn } from "./quoted.ts";
import type { Row } from "./rows.ts";
import { StreamRow } from "./stream-row.tsx";

type TimelineRowProps = {
  row: Row;
  state: SpaceState;
  live: LiveSpace | null;
  names: readonly string[];
  /** The message that somebody was led to. */
  targetId: string | null;
  actions: RowActions;
};

/** One row in the middle column, by its kind. */
export const TimelineRow = (props: TimelineRowProps) => (
  <div className="timeline-row">
    <RowContent {...props} />
  </div>
);

const RowContent = ({ row, state, live, names, targetId, actions }: TimelineRowProps) => {
  switch (row.kind) {
    case "message": {
      const { message, opensDay, opensGroup, opensUnread, readers } = row;
      const senderName = nameOf(state, message.sender.id, message.sender.name);
      const quoted = quotedIn(state, message.replyTo);
      const told = {
        message,
        senderName,
        names,
        members: state.members,
        quoted,
        awaited: awaited(message, state),
        readers,
      };
      const isTarget = message.id === targetId;
      return <MessageRow {...told} {...{ opensDay, opensGroup, opensUnread, isTarget }} {...actions} />;
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
          quoted={quotedIn(state, row.outgoing.replyTo)}
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
