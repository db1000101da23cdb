import { useEffect, useState, useSyncExternalStore } from "react";
import { type BlockState, initialBlockState } from "../blocks/block-state.ts";
import type { LiveBlock } from "../blocks/live-block.ts";
import type { Client } from "../client.ts";

const nothing = (): (() => void) => () => undefined;

/** A space's block followed live for as long as the component is there; `live` is null until the first effect. */
export const useBlock = (
  client: Client,
  spaceId: string,
  agentId: string,
  label: string,
): { state: BlockState; live: LiveBlock | null } => {
  const [live, setLive] = useState<LiveBlock | null>(null);

  useEffect(() => {
    const opened = client.openBlock({ spaceId, agentId, label });
    setLive(opened);
    return () => opened.close();
  }, [client, spaceId, agentId, label]);

  const state = useSyncExternalStore(live?.subscribe ?? nothing, () => live?.getSnapshot() ?? initialBlockState);
  return { state, live };
};
