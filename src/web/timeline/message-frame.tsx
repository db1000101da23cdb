import { type ReactNode, useEffect, useRef } from "react";
import type { EntityType } from "../../client/index.ts";
import { Avatar, TypeBadge } from "../look/avatar.tsx";
import { IconButton } from "../look/button.tsx";
import { clock, Time } from "../look/time.tsx";
import type { Quoted } from "./quoted.ts";
import "./message.css";

type MessageFrameProps = {
  sender: { id: string; name: string; type: EntityType };
  /** ISO 8601; left out while it is being said. */
  createdAt?: string;
  opensGroup: boolean;
  isActive?: boolean;
  isDimmed?: boolean;
  /** A link led here: the message takes the focus and is marked for a moment. */
  isTarget?: boolean;
  onLeft?: (() => void) | undefined;
  onReply?: (() => void) | undefined;
  onEdit?: (() => void) | undefined;
  onDelete?: (() => void) | undefined;
  children: ReactNode;
};

/** The common shape of messages: sender, time and content. */
export const MessageFrame = (props: MessageFrameProps) => {
  const {
    sender,
    createdAt,
    opensGroup,
    isActive = false,
    isDimmed,
    isTarget = false,
    onLeft,
    onReply,
    onEdit,
    onDelete,
    children,
  } = props;
  const element = useRef<HTMLElement>(null);
  useEffect(() => {
    if (isTarget) element.current?.focus({ preventScroll: true });
  }, [isTarget]);
  const at = createdAt && clock(createdAt);
  const time = at && (
    <Time iso={createdAt} className="tiny soft numeric">
      {at}
    </Time>
  );
  return (
    <article
      ref={element}
      className="message"
      // On a phone a tap shows what hovering shows elsewhere.
      tabIndex={-1}
      data-target={isTarget}
      onBlur={onLeft}
      data-opens-group={opensGroup}
      data-dimmed={isDimmed}
      aria-label={`${sender.name}, ${at ?? "writing"}`}
    >
      <div className="message-gutter">{opensGroup ? <Avatar {...sender} active={isActive} /> : time}</div>
      <div>
        {opensGroup && (
          <div className="message-head baseline">
            <span className="wrap">{sender.name}</span>
            <TypeBadge type={sender.type} />
            {time}
          </div>
        )}
        {children}
      </div>
      {(onReply ?? onDelete) && (
        <div className="message-actions raised">
          {onReply && (
            <IconButton icon="reply" size={18} label={`Reply to ${sender.name}`} title="Reply" onClick={onReply} />
          )}
          {onEdit && <IconButton icon="pencil" size={18} label="Edit your message" title="Edit" onClick={onEdit} />}
          {onDelete && (
            <IconButton
              icon="bin"
              size={18}
              label={`Delete the message of ${sender.name}`}
              title="Delete"
              onClick={onDelete}
            />
          )}
        </div>
      )}
    </article>
  );
};

type QuoteLineProps = { quoted: Quoted; onGoTo?: ((messageId: string) => void) | undefined };

/** The message that this one answers; a link to it once it is loaded. */
export const QuoteLine = ({ quoted: { id, name, text }, onGoTo }: QuoteLineProps) => {
  const words = (
    <>
      <span className="visually-hidden">Answers </span>
      <strong>{name}</strong> {text}
    </>
  );
  const className = "message-line message-quote small soft";
  if (text === null || !onGoTo) return <span className={className}>{words}</span>;
  return (
    <button type="button" className={className} title="Go to this message" onClick={() => onGoTo(id)} dir="auto">
      {words}
    </button>
  );
};
