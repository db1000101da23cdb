import type { ReactNode } from "react";
import type { EntityType } from "../../client/index.ts";
import { Avatar, TypeBadge } from "../look/avatar.tsx";
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
  children: ReactNode;
};

/** The one shape of everything that somebody says: who, when, what. */
export const MessageFrame = ({ sender, createdAt, opensGroup, isActive, isDimmed, children }: MessageFrameProps) => (
  <article
    className="message"
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
  </article>
);
