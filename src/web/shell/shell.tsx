import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import type { SpaceListState } from "../../client/index.ts";
import { useSpaces } from "../../client/react.ts";
import { Button, IconButton } from "../look/button.tsx";
import { Icon } from "../look/icon.tsx";
import { SpaceView } from "../open-space/space-view.tsx";
import { ConfidentialSpacesContext, OwnSpacesContext } from "../session/own-spaces.ts";
import { useSignedIn } from "../session/session.ts";
import { WorkspaceView } from "../settings/workspace-view.tsx";
import { NewSpaceDialog } from "../spaces/new-space-dialog.tsx";
import { Sidebar } from "../spaces/sidebar.tsx";
import { byActivity, type OpenSpace, type ReadMarks, withOpenSpace, withReadMarks } from "../spaces/space-items.ts";
import { useSpaceAddress } from "../spaces/use-space-address.ts";
import { list } from "../timeline/presence.ts";
import "./shell.css";

/** The page of a signed-in person: their spaces at the side, the open one in the middle. */
export const Shell = () => {
  const { client, isTheirs, check, signOut } = useSignedIn();
  const { state, refresh } = useSpaces(client);
  const { spaceId, isWorkspace, go } = useSpaceAddress();
  const main = useRef<HTMLElement>(null);
  const [isDrawerOpen, setDrawerOpen] = useState(false);
  const [isCreating, setCreating] = useState(false);
  const [open, setOpen] = useState<OpenSpace | null>(null);
  const [marks, setMarks] = useState<ReadMarks>({});
  const follow = useCallback((next: OpenSpace | null) => {
    setOpen(next);
    const { spaceId: id = "", readSeq = null } = next ?? {};
    if (readSeq !== null) setMarks((all) => (all[id] === readSeq ? all : { ...all, [id]: readSeq }));
  }, []);

  const problem = state.status === "loading" ? null : state.problem;
  useEffect(() => {
    if (problem?.code === "token_expired") signOut("expired");
    if (problem?.code === "unauthorized") signOut("refused");
  }, [problem, signOut]);
  // The other tab may not have told: the server refuses, and later does not refuse any more.
  const isRefused = problem?.code === "signed_in";
  useEffect(() => {
    if (isRefused === isTheirs) check();
  }, [isRefused, isTheirs, check]);

  const listedSpaces = state.status === "ready" ? state.spaces : [];
  const spaces = byActivity(withOpenSpace(withReadMarks(listedSpaces, marks), open));
  const ownSpaces = useOwnSpaces(spaces);
  const confidential = list.format(spaces.flatMap((space) => (space.confidential ? space.name : [])));
  const shownId = spaceId ?? spaces[0]?.id ?? null;
  const listed = spaces.find((space) => space.id === shownId);
  const title = isWorkspace ? "Workspace" : listed?.name;
  const unread = spaces.reduce((sum, space) => sum + (space.unreadCount ?? 0), 0);
  useEffect(() => {
    document.title = `${unread > 0 ? `(${unread}) ` : ""}${title ? `${title} · ` : ""}Colloquy`;
  }, [unread, title]);

  const openDrawer = (): void => setDrawerOpen(true);
  const closeDrawer = useCallback(() => setDrawerOpen(false), []);
  const create = (): void => setCreating(true);
  const leaveSpace = (): void => {
    go(null);
    refresh();
  };

  return (
    <div className="shell">
      <button type="button" className="skip-link" onClick={() => main.current?.focus()}>
        Skip to the messages
      </button>
      <Sidebar
        list={state}
        spaces={spaces}
        openId={isWorkspace ? null : shownId}
        isWorkspace={isWorkspace}
        isOpen={isDrawerOpen}
        onClose={closeDrawer}
        onCreate={create}
        onRetry={refresh}
      />
      <main ref={main} tabIndex={-1} inert={isDrawerOpen}>
        {isWorkspace ? (
          <WorkspaceView onMenu={openDrawer} onClose={() => go(shownId)} />
        ) : shownId !== null && state.status !== "loading" ? (
          <OwnSpacesContext value={ownSpaces}>
            <ConfidentialSpacesContext value={confidential}>
              <SpaceView
                key={shownId}
                spaceId={shownId}
                listed={listed}
                onMenu={openDrawer}
                onChange={follow}
                onLeave={leaveSpace}
              />
            </ConfidentialSpacesContext>
          </OwnSpacesContext>
        ) : (
          <NoSpace list={state} onMenu={openDrawer} onCreate={create} />
        )}
      </main>
      {isCreating && (
        <NewSpaceDialog
          onClose={() => setCreating(false)}
          onCreated={(space) => {
            setCreating(false);
            refresh();
            go(space.id);
            closeDrawer();
          }}
        />
      )}
    </div>
  );
};

/** The same map until a name or a space changes: the list is read anew every few seconds. */
const useOwnSpaces = (spaces: readonly { id: string; name: string }[]): ReadonlyMap<string, string> => {
  const text = JSON.stringify(spaces.map(({ id, name }) => [id, name]).sort());
  return useMemo(() => new Map<string, string>(JSON.parse(text)), [text]);
};

type NoSpaceProps = { list: SpaceListState; onMenu: () => void; onCreate: () => void };

const NoSpace = ({ list, onMenu, onCreate }: NoSpaceProps) => (
  <div className="no-space centered">
    <IconButton icon="menu" className="only-narrow" label="Show spaces" onClick={onMenu} />
    {list.status === "ready" && (
      <>
        <h1>No space is open</h1>
        <p className="soft">
          {list.spaces.length === 0
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
