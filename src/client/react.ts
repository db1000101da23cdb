import { useCallback, useEffect, useMemo, useState, useSyncExternalStore } from "react";
import { type BlockState, initialBlockState } from "./blocks/block-state.ts";
import type { LiveBlock } from "./blocks/live-block.ts";
import type { Client } from "./client.ts";
import type { Line } from "./line.ts";
import type { LineState } from "./line-state.ts";
import type { LiveSpace, Outbox } from "./live-space.ts";
import { initialSpaceState, type SpaceState } from "./space-state.ts";
import type { Store } from "./store.ts";

const nothing = (): (() => void) => () => undefined;

/** Follows what `open` returns for as long as the component is mounted. `live` is null until the first effect. */
const useLive = <State, Live extends Store<State> & { close(): void }>(
  open: () => Live,
  initial: State,
): { state: State; live: Live | null } => {
  const [opened, setOpened] = useState<{ by: () => Live; live: Live } | null>(null);
  useEffect(() => {
    const live = open();
    setOpened({ by: open, live });
    return () => live.close();
  }, [open]);

  const live = opened?.by === open ? opened.live : null;
  const state = useSyncExternalStore(live?.subscribe ?? nothing, () => live?.getSnapshot() ?? initial);
  return { state, live };
};

/** Follows a space live. The same `outbox` is to be given each time. */
export const useSpace = (
  client: Client,
  spaceId: string,
  outbox?: Outbox,
): { state: SpaceState; live: LiveSpace | null } => {
  const open = useCallback(() => client.openSpace(spaceId, outbox && { outbox }), [client, spaceId, outbox]);
  const initial = useMemo(() => initialSpaceState(spaceId), [spaceId]);
  return useLive(open, initial);
};

/** Follows a block of a space live. */
export const useBlock = (
  client: Client,
  spaceId: string,
  agentId: string,
  label: string,
): { state: BlockState; live: LiveBlock | null } => {
  const open = useCallback(() => client.openBlock({ spaceId, agentId, label }), [client, spaceId, agentId, label]);
  return useLive(open, initialBlockState);
};

/** All of the person's spaces, as they stand, live. */
export const useLine = (client: Client): { state: LineState; live: Line | null } => {
  const open = useCallback(() => client.openLine(), [client]);
  return useLive<LineState, Line>(open, loading);
};

const loading = { status: "loading" } as const;
