import { useCallback, useEffect, useRef, useState } from "react";
import { type LineState, maxUnreadCount, type SpaceSummary } from "../../client/index.ts";
import { Avatar } from "../look/avatar.tsx";
import { IconButton } from "../look/button.tsx";
import { Icon } from "../look/icon.tsx";
import { ThemeToggle } from "../look/theme.tsx";
import { Time } from "../look/time.tsx";
import { Wordmark } from "../look/wordmark.tsx";
import { NotificationsDialog } from "../notifications/notifications-dialog.tsx";
import { SignOutEverywhereDialog } from "../session/credentials.tsx";
import { useSignedIn } from "../session/session.ts";
import { useRequest } from "../session/use-request.ts";
import { AssistantDialog } from "../settings/assistant.tsx";
import { confidentialWords, preview } from "./space-items.ts";
import { addressOf, workspaceAddress } from "./use-space-address.ts";
import "./sidebar.css";

type SidebarProps = {
  line: LineState;
  spaces: readonly SpaceSummary[];
  openId: string | null;
  /** Whether the workspace's settings are open. */
  isWorkspace: boolean;
  /** Whether the drawer is open on a narrow screen. On a wide screen the sidebar is always there. */
  isOpen: boolean;
  onClose: () => void;
  onCreate: () => void;
};

export const Sidebar = (props: SidebarProps) => {
  const { line, spaces, openId, isWorkspace, isOpen, onClose, onCreate } = props;
  const { client, entityId, madeBy, signOut } = useSignedIn();
  const [isEndingAll, setEndingAll] = useState(false);
  const [isConnecting, setConnecting] = useState(false);
  const [isNotifying, setNotifying] = useState(false);
  // A failure shows nothing here, since the list of spaces shows it.
  const { answer: you } = useRequest(useCallback(() => client.getEntity(entityId), [client, entityId]));
  const drawer = useRef<HTMLElement>(null);

  useEffect(() => {
    if (!isOpen) return;
    const before = document.activeElement;
    drawer.current?.querySelector<HTMLElement>("[aria-current], a")?.focus();
    const closeOnEscape = (event: KeyboardEvent): void => {
      if (event.key === "Escape") onClose();
    };
    addEventListener("keydown", closeOnEscape);
    return () => {
      removeEventListener("keydown", closeOnEscape);
      if (before instanceof HTMLElement) requestAnimationFrame(() => before.focus());
    };
  }, [isOpen, onClose]);

  const veil = { className: "sidebar-veil veil", "data-open": isOpen, onClick: onClose };
  return (
    <>
      <button type="button" tabIndex={-1} aria-hidden="true" {...veil} />
      <nav className="sidebar" data-open={isOpen} aria-label="Spaces" ref={drawer}>
        <div className="sidebar-head row between">
          <Wordmark />
          <span className="row">
            {you?.role === "admin" && (
              <a
                className="icon-button"
                href={workspaceAddress}
                aria-label="Workspace"
                title="What the workspace uses, keeps and forgets"
                aria-current={isWorkspace ? "page" : undefined}
                onClick={onClose}
              >
                <Icon name="sliders" />
              </a>
            )}
            <IconButton icon="plus" label="New space" onClick={onCreate} />
          </span>
        </div>
        <ul>
          {spaces.map((space) => (
            <SpaceLink key={space.spaceId} space={space} isOpen={space.spaceId === openId} onOpen={onClose} />
          ))}
        </ul>
        {line.status === "loading" && <p className="small soft">Loading your spaces …</p>}
        {line.status === "failed" && (
          <p className="small soft" role="alert">
            Your spaces could not be loaded, and are asked for again. {line.problem.message}
          </p>
        )}
        {line.status === "ready" && spaces.length === 0 && <p className="small soft">You are in no space yet.</p>}
        <div className="sidebar-foot row">
          <span className="row">
            {you && (
              <>
                <Avatar {...you} size={28} />
                <span className="words">
                  <span className="ellipsis medium">{you.name}</span>
                  {madeBy && <span className="tiny soft">Signed in by {madeBy.name}: you approve nothing</span>}
                </span>
              </>
            )}
          </span>
          <ThemeToggle />
          <IconButton icon="bell" label="Notifications" title="Notifications" onClick={() => setNotifying(true)} />
          <IconButton
            icon="tool"
            label="Connect an assistant"
            title="Connect an assistant"
            onClick={() => setConnecting(true)}
          />
          <IconButton
            icon="lock"
            label="End all sessions"
            title="Sign out everywhere"
            onClick={() => setEndingAll(true)}
          />
          <IconButton icon="leave" label="Sign out" title="Sign out" onClick={() => signOut("left")} />
        </div>
      </nav>
      {isNotifying && <NotificationsDialog onClose={() => setNotifying(false)} />}
      {isConnecting && <AssistantDialog isAdmin={you?.role === "admin"} onClose={() => setConnecting(false)} />}
      {isEndingAll && <SignOutEverywhereDialog onClose={() => setEndingAll(false)} />}
    </>
  );
};

const SpaceLink = ({ space, isOpen, onOpen }: { space: SpaceSummary; isOpen: boolean; onOpen: () => void }) => {
  const { entityId } = useSignedIn();
  const { unread } = space;
  const current = isOpen ? "page" : undefined;
  return (
    <li>
      <a
        className="space-link hoverable"
        href={addressOf(space.spaceId)}
        aria-current={current}
        data-unread={unread > 0}
        onClick={onOpen}
      >
        <span className="ellipsis medium">
          {space.confidential && (
            <span className="confidential-mark" title={confidentialWords}>
              <Icon name="lock" size={15} />
              <span className="visually-hidden">Confidential: </span>
            </span>
          )}
          {space.name}
        </span>
        {space.preview && <Time iso={space.at} className="tiny soft numeric" />}
        <span className="ellipsis small soft">{preview(space, entityId)}</span>
        {unread > 0 && (
          <span className="space-link-unread">
            {unread >= maxUnreadCount ? `${maxUnreadCount}+` : unread}
            <span className="visually-hidden"> unread</span>
          </span>
        )}
      </a>
    </li>
  );
};
