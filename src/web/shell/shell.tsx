import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import type { LineState, SpaceSummary } from "../../client/index.ts";
import { useLine } from "../../client/react.ts";
import { Button, IconButton } from "../look/button.tsx";
import { Icon } from "../look/icon.tsx";
import { useNotices } from "../notifications/notices.ts";
import { SettingsContext, useOwnSettings } from "../notifications/settings.ts";
import { renewDevice } from "../notifications/this-browser.ts";
import { SpaceView } from "../open-space/space-view.tsx";
import { ConfidentialSpacesContext, OwnSpacesContext } from "../session/own-spaces.ts";
import { useSignedIn } from "../session/session.ts";
import { WorkspaceView } from "../settings/workspace-view.tsx";
import { NewSpaceDialog } from "../spaces/new-space-dialog.tsx";
import { Sidebar } from "../spaces/sidebar.tsx";
import { useSpaceAddress } from "../spaces/use-space-address.ts";
import { list } from "../timeline/presence.ts";
import "./shell.css";

/** The page of a signed-in person: their spaces at the side, the open one in the middle. */
export const Shell = () => {
  const { client, entityId, isTheirs, check, signOut } = useSignedIn();
  const { state: line, live } = useLine(client);
  useNotices(entityId, line, live);
  const settings = useOwnSettings(line);
  // Without it no push comes until the page is opened again: nothing else hangs on it.
  useEffect(() => void renewDevice(client, entityId).catch(() => undefined), [client, entityId]);
  const { spaceId, led, isWorkspace, go } = useSpaceAddress();
  const main = useRef<HTMLElement>(null);
  const [isDrawerOpen, setDrawerOpen] = useState(false);
  const [isCreating, setCreating] = useState(false);

  const problem = line.status === "loading" ? null : line.problem;
  useEffect(() => {
    if (problem?.code === "token_expired") signOut("expired");
    if (problem?.code === "unauthorized") signOut("refused");
  }, [problem, signOut]);
  // The other tab may not have told: the server refuses, and later does not refuse any more.
  const isRefused = problem?.code === "signed_in";
  useEffect(() => {
    if (isRefused === isTheirs) check();
  }, [isRefused, isTheirs, check]);

  const spaces = line.status === "ready" ? line.spaces : none;
  const ownSpaces = useOwnSpaces(spaces);
  const confidential = list.format(spaces.flatMap((space) => (space.confidential ? space.name : [])));
  const shownId = spaceId ?? spaces[0]?.spaceId ?? null;
  const listed = spaces.find((space) => space.spaceId === shownId);
  const title = isWorkspace ? "Workspace" : listed?.name;
  const unread = spaces.reduce((sum, space) => sum + space.unread, 0);
  useEffect(() => {
    document.title = `${unread > 0 ? `(${unread}) ` : ""}${title ? `${title} · ` : ""}Colloquy`;
    return () => {
      document.title = "Colloquy";
    };
  }, [unread, title]);

  const openDrawer = (): void => setDrawerOpen(true);
  const closeDrawer = useCallback(() => setDrawerOpen(false), []);
  const create = (): void => setCreating(true);

  return (
    <SettingsContext value={settings}>
      <div className="shell">
        <button type="button" className="skip-link" onClick={() => main.current?.focus()}>
          Skip to the messages
        </button>
        <Sidebar
          line={line}
          spaces={spaces}
          openId={isWorkspace ? null : shownId}
          isWorkspace={isWorkspace}
          isOpen={isDrawerOpen}
          onClose={closeDrawer}
          onCreate={create}
        />
        <main ref={main} tabIndex={-1} inert={isDrawerOpen}>
          {isWorkspace ? (
            <WorkspaceView onMenu={openDrawer} onClose={() => go(shownId)} />
          ) : shownId !== null && line.status !== "loading" ? (
            <OwnSpacesContext value={ownSpaces}>
              <ConfidentialSpacesContext value={confidential}>
                <SpaceView
                  key={shownId}
                  spaceId={shownId}
                  listed={listed}
                  ledBy={led}
                  onMenu={openDrawer}
                  onLeave={() => go(null)}
                />
              </ConfidentialSpacesContext>
            </OwnSpacesContext>
          ) : (
            <NoSpace line={line} onMenu={openDrawer} onCreate={create} />
          )}
        </main>
        {isCreating && (
          <NewSpaceDialog
            onClose={() => setCreating(false)}
            onCreated={(space) => {
              setCreating(false);
              go(space.id);
              closeDrawer();
            }}
          />
        )}
      </div>
    </SettingsContext>
  );
};

const none: readonly SpaceSummary[] = [];

/** The same map until a name or a space changes: the line tells of each message. */
const useOwnSpaces = (spaces: readonly SpaceSummary[]): ReadonlyMap<string, string> => {
  const text = JSON.stringify(spaces.map(({ spaceId, name }) => [spaceId, name]).sort());
  return useMemo(() => new Map<string, string>(JSON.parse(text)), [text]);
};

type NoSpaceProps = { line: LineState; onMenu: () => void; onCreate: () => void };

const NoSpace = ({ line, onMenu, onCreate }: NoSpaceProps) => (
  <div className="no-space centered">
    <IconButton icon="menu" className="only-narrow" label="Show spaces" onClick={onMenu} />
    {line.status === "ready" && (
      <>
        <h1>No space is open</h1>
        <p className="soft">
          {line.spaces.length === 0
            ? "You are not in any space yet. Create one, or ask somebody to add you to theirs."
            : "Pick one at the side."}
        </p>
        <Button look="primary" onClick={onCreate}>
          <Icon name="plus" size={18} /> New space
        </Button>
      </>
    )}
  </div>
);
