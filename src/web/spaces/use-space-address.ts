import { useEffect, useState } from "react";
import { recall, remember } from "../storage.ts";

const key = "colloquy.space";

const fromAddress = (): string | null => (location.hash.startsWith("#spc_") ? location.hash.slice(1) : null);

export const addressOf = (spaceId: string): string => `#${spaceId}`;
export const workspaceAddress = "#workspace";

type SpaceAddress = {
  spaceId: string | null;
  /** Whether the workspace's settings stand in the space's place. */
  isWorkspace: boolean;
  go: (spaceId: string | null) => void;
};

/** The open space: the one in the address, else the last one of this tab. */
export const useSpaceAddress = (): SpaceAddress => {
  const [spaceId, setSpaceId] = useState(() => fromAddress() ?? recall("tab", key));
  const [isWorkspace, setWorkspace] = useState(() => location.hash === workspaceAddress);

  useEffect(() => {
    const follow = (): void => {
      setWorkspace(location.hash === workspaceAddress);
      if (location.hash !== workspaceAddress) setSpaceId(fromAddress());
    };
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  useEffect(() => {
    if (spaceId !== null) remember("tab", key, spaceId);
  }, [spaceId]);

  const go = (next: string | null): void => {
    if (next === null) {
      remember("tab", key, null);
      history.replaceState(null, "", location.pathname + location.search);
      setSpaceId(null);
      setWorkspace(false);
    } else location.hash = addressOf(next);
  };
  return { spaceId, isWorkspace, go };
};
