import { useEffect, useState, useSyncExternalStore } from "react";
import type { Client } from "../client.ts";
import type { LiveSpace } from "../live-space.ts";
import { initialSpaceState, type SpaceState } from "../space-state.ts";

const nothing = (): (() => void) => () => undefined;

/** A space followed live for as long as the component is there; `live` is null until the first effect. */
export const useSpace = (client: Client, spaceId: string): { state: SpaceState; live: LiveSpace | null } => {
  const [opened, setOpened] = useState<{ spaceId: string; live: LiveSpace } | null>(null);
  const [initial, setInitial] = useState(() => initialSpaceState(spaceId));
  if (initial.spaceId !== spaceId) setInitial(initialSpaceState(spaceId));

  useEffect(() => {
    const live = client.openSpace(spaceId);
    setOpened({ spaceId, live });
    return () => live.close();
  }, [client, spaceId]);

  const live = opened?.spaceId === spaceId ? opened.live : null;
  const state = useSyncExternalStore(live?.subscribe ?? nothing, () => live?.getSnapshot() ?? initial);
  return { state, live };
};
