import { memo, use } from "react";
import type { Member, Message } from "../../client/index.ts";
import { Avatar } from "../look/avatar.tsx";
import { Icon } from "../look/icon.tsx";
import { day } from "../look/time.tsx";
import { OwnSpacesContext } from "../session/own-spaces.ts";
import { ToolCallCard } from "../tool-calls/tool-call-card.tsx";
import { Markdown } from "./markdown.tsx";
import type { Asked } from "./message-dialogs.tsx";
import { MessageFrame, QuoteLine } from "./message-frame.tsx";
import { OriginLine } from "./origin-line.tsx";
import { list, readsInWords } from "./presence.ts";
import type { Quoted } from "./quoted.ts";
import type { Reader, ShownMessage } from "./rows.ts";

/** The actions of a row; the same functions for all rows. */
export type RowActions = {
  onReply: (messageId: string) => void;
  onGoTo: (messageId: string) => void;
  onChange: (asked: Asked) => void;
  /** The focus has left the row that a link led to. */
  onLeft: () => void;
};

type MessageRowProps = {
  /** The current name of its sender. */
  senderName: string;
  names: readonly string[];
  members: readonly Member[];
  quoted: Quoted | null;
  /** The names of those whose answer it waits for. */
  awaited: string | null;
  isTarget: boolean;
  mayEdit: boolean;
  mayDelete: boolean;
  /** The current name of who deleted it. */
  deleterName: string;
} & ShownMessage &
  RowActions;

export const MessageRow = memo((props: MessageRowProps) => {
  const { message, senderName, names, members, quoted, awaited, opensDay, opensGroup, opensUnread, readers } = props;
  const { isTarget, onReply, onGoTo, onLeft, onChange, mayEdit, mayDelete, deleterName } = props;
  const { deleted } = message;
  return (
    <>
      {opensDay && (
        <div className="divider row tiny soft">
          <span>{day(message.createdAt)}</span>
        </div>
      )}
      {opensUnread && (
        <div className="divider divider-unread row tiny">
          <span>New</span>
        </div>
      )}
      <MessageFrame
        sender={{ ...message.sender, name: senderName }}
        createdAt={message.createdAt}
        opensGroup={opensGroup}
        isTarget={isTarget}
        onLeft={isTarget ? onLeft : undefined}
        onReply={message.kind === "text" && !deleted ? () => onReply(message.id) : undefined}
        onEdit={mayEdit ? () => onChange({ what: "edit", message }) : undefined}
        onDelete={mayDelete ? () => onChange({ what: "delete", message }) : undefined}
      >
        {deleted && <p className="message-aside small soft">Message deleted by {deleterName}</p>}
        {message.origin && <OriginLine message={message} />}
        {quoted && <QuoteLine quoted={quoted} onGoTo={onGoTo} />}
        {message.text !== undefined && !deleted && <Markdown text={message.text} names={names} />}
        {message.editedAt && !deleted && <span className="tiny soft">edited</span>}
        {message.toolCall && <ToolCallCard spaceId={message.spaceId} call={message.toolCall} members={members} />}
        {message.reads && <ReadsLine reads={message.reads} />}
        {awaited !== null && (
          <p className="message-aside row small soft">
            <Icon name="clock" size={14} /> waits for {awaited}
          </p>
        )}
        {readers.length > 0 && <ReaderFaces readers={readers} />}
      </MessageFrame>
    </>
  );
});

/** People see that an agent which answers them has read another space, and whether they could have read it. */
const ReadsLine = ({ reads }: { reads: NonNullable<Message["reads"]> }) => (
  <p className="message-aside wrap small soft" dir="auto">
    {readsInWords(reads, use(OwnSpacesContext))}
  </p>
);

const shownReaders = 3;

/** The members who have read up to a message, as small faces at its end. */
const ReaderFaces = ({ readers }: { readers: readonly Reader[] }) => {
  const words = `Read by ${list.format(readers.map((reader) => reader.words))}`;
  return (
    <span className="readers" role="img" aria-label={words} title={words}>
      {readers.slice(0, shownReaders).map((reader) => (
        <Avatar key={reader.id} {...reader} size={16} />
      ))}
    </span>
  );
};
