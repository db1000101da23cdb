import { useEffect, useState } from "react";
import { followClicks } from "../notifications/service-worker.ts";
import { recall, remember } from "../storage.ts";
import type { Led } from "../timeline/timeline.tsx";

const key = "colloquy.space";

/** The space of an address, and the message in it that a notification leads to. */
const fromAddress = (): { spaceId: string | null; messageId: string | null } => {
  const [, spaceId = null, messageId = null] = /^#(spc_\w+)(?:\/(msg_\w+))?$/.exec(location.hash) ?? [];
  return { spaceId, messageId };
};

const ledByAddress = (): Led | null => {
  const { messageId } = fromAddress();
  return messageId === null ? null : { messageId };
};

export const addressOf = (spaceId: string): string => `#${spaceId}`;
export const workspaceAddress = "#workspace";

type SpaceAddress = {
  spaceId: string | null;
  /** The message that the address leads to, anew each time. */
  led: Led | null;
  /** Whether the workspace's settings stand in the space's place. */
  isWorkspace: boolean;
  go: (spaceId: string | null) => void;
};

/** The open space: the one in the address, else the last one of this tab. */
export const useSpaceAddress = (): SpaceAddress => {
  const [spaceId, setSpaceId] = useState(() => fromAddress().spaceId ?? recall("tab", key));
  const [led, setLed] = useState(ledByAddress);
  const [isWorkspace, setWorkspace] = useState(() => location.hash === workspaceAddress);

  useEffect(() => {
    const follow = (): void => {
      setWorkspace(location.hash === workspaceAddress);
      if (location.hash !== workspaceAddress) setSpaceId(fromAddress().spaceId);
      setLed(ledByAddress());
    };
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  useEffect(
    () =>
      followClicks((address) => {
        // The same address again leads there again.
        history.replaceState(null, "", location.pathname + location.search);
        location.hash = address;
      }),
    [],
  );
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
  return { spaceId, led, isWorkspace, go };
};
