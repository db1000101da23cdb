import type { LiveSpace, Note, OutgoingMessage, SpaceState } from "../../client/index.ts";
import { Boundary } from "../look/boundary.tsx";
import { LinkButton } from "../look/button.tsx";
import { GrowingCall } from "../tool-calls/tool-call-card.tsx";
import { Markdown } from "./markdown.tsx";
import { MessageFrame, QuoteLine } from "./message-frame.tsx";
import { MessageRow, type RowActions } from "./message-row.tsx";
import { awaited, nameOf, spentWords } from "./presence.ts";
import { quotedIn } from "./quoted.ts";
import type { Row } from "./rows.ts";

type TimelineRowProps = {
  row: Row;
  state: SpaceState;
  live: LiveSpace | null;
  names: readonly string[];
  /** The message that a link led to. */
  targetId: string | null;
  isAdmin: boolean;
  actions: RowActions;
};

/** One row in the middle column, by its kind. */
export const TimelineRow = (props: TimelineRowProps) => {
  const message = props.row.kind === "message" ? props.row.message : null;
  const sentence = <p className="note wrap small danger">Message {message?.id ?? props.row.key} cannot be shown.</p>;
  return (
    <div className="timeline-row">
      <Boundary of={message ?? props.row.key} instead={sentence}>
        <RowContent {...props} />
      </Boundary>
    </div>
  );
};

const RowContent = ({ row, state, live, names, targetId, isAdmin, actions }: TimelineRowProps) => {
  switch (row.kind) {
    case "message": {
      const { kind: _, key: __, ...shown } = row;
      const { message } = row;
      const isOwn = message.sender.id === state.you?.id;
      const { id = "", name = "an admin" } = message.deleted?.by ?? {};
      const isOver = message.toolCall === undefined || overStates.includes(message.toolCall.status);
      return (
        <MessageRow
          {...shown}
          {...actions}
          senderName={nameOf(state, message.sender.id, message.sender.name)}
          names={names}
          members={state.members}
          quoted={quotedIn(state, message.replyTo)}
          awaited={awaited(message, state)}
          isTarget={message.id === targetId}
          mayEdit={isOwn && message.kind === "text" && !message.deleted}
          mayDelete={(isOwn || isAdmin) && isOver && !message.deleted}
          deleterName={nameOf(state, id, name)}
        />
      );
    }
    case "stream": {
      const { entityId: id, toolName, speaks, text } = row.stream;
      const { name = "An agent", type = "agent" } = state.members.find((one) => one.id === id) ?? {};
      // This row becomes the row of the finished message, so nothing jumps at the end.
      return (
        <MessageFrame sender={{ id, name, type }} opensGroup={row.opensGroup} isActive>
          {speaks ? <Markdown text={text} names={names} isGrowing /> : <GrowingCall name={toolName} text={text} />}
        </MessageFrame>
      );
    }
    case "outgoing": {
      const { outgoing, opensGroup } = row;
      return <OutgoingRow {...{ outgoing, opensGroup, state, live, names }} />;
    }
    case "note": {
      const { note } = row;
      if (note.kind === "spent") return <p className="note wrap small soft">{spentWords(note, state)}</p>;
      const name = note.kind === "unrouted" ? "The router" : nameOf(state, note.entityId, "An agent");
      return (
        <p className={`note wrap small ${note.kind === "failed" ? "danger" : "soft"}`}>
          {name} {noteWords[note.kind]}
          {note.reason ? `: ${note.reason}` : "."}
        </p>
      );
    }
  }
};

/** A tool call's message is deleted once the call is over. */
const overStates = ["complete", "error", "expired", "canceled"];

/** The outcome of a run that left no message, or of a router that failed. */
const noteWords: Record<Exclude<Note["kind"], "spent">, string> = {
  failed: "could not answer",
  silent: "read this and said nothing",
  canceled: "was stopped",
  unrouted: "could not decide who is to answer",
};

type OutgoingRowProps = Pick<TimelineRowProps, "state" | "live" | "names"> & {
  outgoing: OutgoingMessage;
  opensGroup: boolean;
};

/** A message of this person that the log does not have yet: sent, waiting for the connection, or refused. */
const OutgoingRow = ({ outgoing, opensGroup, state, live, names }: OutgoingRowProps) => {
  const { status, clientKey, createdAt, text, replyTo } = outgoing;
  const quoted = quotedIn(state, replyTo);
  const { id, name } = state.you ?? { id: "", name: "You" };
  const isPending = status.kind === "pending";
  return (
    <MessageFrame sender={{ id, name, type: "human" }} {...{ createdAt, opensGroup }} isDimmed={isPending}>
      {quoted && <QuoteLine quoted={quoted} />}
      <Markdown text={text} names={names} />
      {isPending && state.connection.status !== "open" && (
        <p className="small soft">Will be sent when the connection is back.</p>
      )}
      {status.kind === "failed" && (
        <p className="outgoing-failed buttons small danger" role="alert">
          <span>Not sent: {status.message}</span>
          <LinkButton onClick={() => live?.retry(clientKey)}>Try again</LinkButton>
          <LinkButton onClick={() => live?.discard(clientKey)}>Discard</LinkButton>
        </p>
      )}
    </MessageFrame>
  );
};
