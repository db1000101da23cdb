import { type ReactNode, useEffect, useRef } from "react";
import type { EntityType } from "../../client/index.ts";
import { Avatar, TypeBadge } from "../look/avatar.tsx";
import { Icon } from "../look/icon.tsx";
import { clock, full } from "../look/time.ts";
import "./message-frame.css";

type Sender = { id: string; name: string; type: EntityType };

type MessageFrameProps = {
  sender: Sender;
  /** ISO 8601; left out while it is being said. */
  createdAt?: string;
  opensGroup: boolean;
  isActive?: boolean;
  isDimmed?: boolean;
  /** Somebody was led here: it takes the focus and shows it for a moment. */
  isTarget?: boolean;
  onLeft?: (() => void) | undefined;
  onReply?: (() => void) | undefined;
  children: ReactNode;
};

/** The one shape of everything that somebody says: who, when, what. */
export const MessageFrame = (props: MessageFrameProps) => {
  const { sender, createdAt, opensGroup, isActive, isDimmed, isTarget = false, onLeft, onReply, children } = props;
  const element = useRef<HTMLElement>(null);
  useEffect(() => {
    if (isTarget) element.current?.focus({ preventScroll: true });
  }, [isTarget]);
  return (
    <article
      ref={element}
      className="message"
      // A tap shows on a phone what hovering shows elsewhere.
      tabIndex={-1}
      data-target={isTarget}
      onBlur={onLeft}
      data-opens-group={opensGroup}
      data-dimmed={isDimmed ?? false}
      aria-label={createdAt ? `${sender.name}, ${clock(createdAt)}` : `${sender.name}, writing`}
    >
      <div className="message-gutter">
        {opensGroup ? (
          <Avatar {...sender} active={isActive ?? false} />
        ) : (
          createdAt && (
            <time className="message-time message-time-aside" dateTime={createdAt} title={full(createdAt)}>
              {clock(createdAt)}
            </time>
          )
        )}
      </div>
      <div className="message-content">
        {opensGroup && (
          <div className="message-head">
            <span className="message-sender">{sender.name}</span>
            <TypeBadge type={sender.type} />
            {createdAt && (
              <time className="message-time" dateTime={createdAt} title={full(createdAt)}>
                {clock(createdAt)}
              </time>
            )}
          </div>
        )}
        {children}
      </div>
      {onReply && (
        <div className="message-actions">
          <button
            type="button"
            className="icon-button"
            aria-label={`Reply to ${sender.name}`}
            title="Reply"
            onClick={onReply}
          >
            <Icon name="reply" size={18} />
          </button>
        </div>
      )}
    </article>
  );
};
