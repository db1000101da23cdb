import { memo } from "react";
import type { Member, Message } from "../../client/index.ts";
import { Icon } from "../look/icon.tsx";
import { day } from "../look/time.ts";
import { ToolCallCard } from "../tool-calls/tool-call-card.tsx";
import { Markdown } from "./markdown.tsx";
import { MessageFrame } from "./message-frame.tsx";
import { OriginLine, QuoteLine } from "./message-lines.tsx";
import type { Quoted } from "./quoted.ts";
import { ReaderFaces } from "./reader-faces.tsx";
import type { Reader } from "./readers.ts";
import "./message-row.css";

/** What rows let a person do; the same functions for all of them. */
export type RowActions = {
  onReply: (messageId: string) => void;
  onGoTo: (messageId: string) => void;
  /** The row that somebody was led to is left again. */
  onLeft: () => void;
};

type MessageRowProps = {
  message: Message;
  /** What its sender is called now. */
  senderName: string;
  names: readonly string[];
  members: readonly Member[];
  quoted: Quoted | null;
  /** Whose answer it still waits for. */
  awaited: string | null;
  opensDay: boolean;
  opensGroup: boolean;
  opensUnread: boolean;
  readers: readonly Reader[];
  isTarget: boolean;
} & RowActions;

export const MessageRow = memo((props: MessageRowProps) => {
  const { message, senderName, names, members, quoted, awaited, opensDay, opensGroup, opensUnread, readers } = props;
  const { isTarget, onReply, onGoTo, onLeft } = props;
  return (
    <>
      {opensDay && (
        <div className="divider">
          <span>{day(message.createdAt)}</span>
        </div>
      )}
      {opensUnread && (
        <div className="divider divider-unread">
          <span>New</span>
        </div>
      )}
      <MessageFrame
        sender={{ ...message.sender, name: senderName }}
        createdAt={message.createdAt}
        opensGroup={opensGroup}
        isTarget={isTarget}
        onLeft={isTarget ? onLeft : undefined}
        onReply={message.kind === "text" ? () => onReply(message.id) : undefined}
      >
        {message.origin && <OriginLine origin={message.origin} />}
        {quoted && <QuoteLine quoted={quoted} onGoTo={onGoTo} />}
        {message.text !== undefined && <Markdown text={message.text} names={names} />}
        {message.toolCall && <ToolCallCard spaceId={message.spaceId} call={message.toolCall} members={members} />}
        {awaited !== null && (
          <p className="message-aside">
            <Icon name="clock" size={14} /> waits for {awaited}
          </p>
        )}
        <ReaderFaces readers={readers} />
      </MessageFrame>
    </>
  );
});
