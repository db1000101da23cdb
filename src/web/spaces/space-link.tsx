import { maxUnreadCount, type SpaceListItem } from "../../client/index.ts";
import { full, short } from "../look/time.ts";
import { preview } from "./space-items.ts";
import { addressOf } from "./use-space-address.ts";

type SpaceLinkProps = { space: SpaceListItem; youId: string; isOpen: boolean; onOpen: () => void };

export const SpaceLink = ({ space, youId, isOpen, onOpen }: SpaceLinkProps) => {
  const unread = space.unreadCount ?? 0;
  const count = unread >= maxUnreadCount ? `${maxUnreadCount}+` : String(unread);
  const time = space.lastMessage?.createdAt;
  return (
    <li>
      <a
        className="space-link hoverable"
        href={addressOf(space.id)}
        aria-current={isOpen ? "page" : undefined}
        data-unread={unread > 0}
        onClick={onOpen}
      >
        <span className="space-link-name ellipsis medium">{space.name}</span>
        {time && (
          <time className="tiny soft numeric" dateTime={time} title={full(time)}>
            {short(time)}
          </time>
        )}
        <span className="space-link-preview ellipsis small soft">{preview(space, youId)}</span>
        {unread > 0 && (
          <span className="space-link-unread">
            {count}
            <span className="visually-hidden"> unread</span>
          </span>
        )}
      </a>
    </li>
  );
};
