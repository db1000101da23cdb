import { useEffect, useState } from "react";
import { recall, remember } from "../storage.ts";

const key = "colloquy.space";

const fromAddress = (): string | null => (location.hash.startsWith("#spc_") ? location.hash.slice(1) : null);

export const addressOf = (spaceId: string): string => `#${spaceId}`;

/** The open space: the one in the address, else the last one of this tab. */
export const useSpaceAddress = (): { spaceId: string | null; go: (spaceId: string | null) => void } => {
  const [spaceId, setSpaceId] = useState(() => fromAddress() ?? recall("tab", key));

  useEffect(() => {
    const follow = (): void => setSpaceId(fromAddress());
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
    } else location.hash = addressOf(next);
  };
  return { spaceId, go };
};
