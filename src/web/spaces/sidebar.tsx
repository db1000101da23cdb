import { useCallback, useEffect, useRef } from "react";
import type { SpaceListItem, SpaceListState } from "../../client/index.ts";
import { Avatar } from "../look/avatar.tsx";
import { IconButton } from "../look/icon.tsx";
import { LinkButton } from "../look/link-button.tsx";
import { ThemeToggle } from "../look/theme.tsx";
import { Wordmark } from "../look/wordmark.tsx";
import { useSignedIn } from "../session/signed-in.ts";
import { useRequest } from "../session/use-request.ts";
import { SpaceLink } from "./space-link.tsx";
import "./sidebar.css";

type SidebarProps = {
  list: SpaceListState;
  spaces: readonly SpaceListItem[];
  openId: string | null;
  /** Whether the drawer is open on a narrow screen. On a wide screen the sidebar is always there. */
  isOpen: boolean;
  onClose: () => void;
  onCreate: () => void;
  onRetry: () => void;
};

export const Sidebar = ({ list, spaces, openId, isOpen, onClose, onCreate, onRetry }: SidebarProps) => {
  const { client, entityId, signOut } = useSignedIn();
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

  return (
    <>
      <button
        type="button"
        className="sidebar-veil veil"
        data-open={isOpen}
        tabIndex={-1}
        aria-hidden="true"
        onClick={onClose}
      />
      <nav className="sidebar" data-open={isOpen} aria-label="Spaces" ref={drawer}>
        <div className="sidebar-head row between">
          <Wordmark />
          <IconButton icon="plus" label="New space" onClick={onCreate} />
        </div>
        <ul className="sidebar-list">
          {spaces.map((space) => (
            <SpaceLink key={space.id} space={space} youId={entityId} isOpen={space.id === openId} onOpen={onClose} />
          ))}
        </ul>
        {list.status === "loading" && <p className="sidebar-note small soft">Loading your spaces …</p>}
        {list.status === "failed" && (
          <p className="sidebar-note small soft" role="alert">
            Your spaces could not be loaded. {list.problem.message} <LinkButton onClick={onRetry}>Try again</LinkButton>
          </p>
        )}
        {list.status === "ready" && spaces.length === 0 && (
          <p className="sidebar-note small soft">You are in no space yet.</p>
        )}
        <div className="sidebar-foot row">
          <span className="you row">
            {you && (
              <>
                <Avatar id={you.id} name={you.name} type={you.type} size={28} />
                <span className="you-name ellipsis medium">{you.name}</span>
              </>
            )}
          </span>
          <ThemeToggle />
          <IconButton icon="leave" label="Sign out" title="Sign out" onClick={() => signOut("left")} />
        </div>
      </nav>
    </>
  );
};
