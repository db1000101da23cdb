import { useEffect, useState, useSyncExternalStore } from "react";
import type { Client } from "../client.ts";
import { type SpaceList, type SpaceListState, watchSpaces } from "../space-list.ts";

const loading: SpaceListState = { status: "loading" };
const nothing = (): (() => void) => () => undefined;

/** The person's spaces with unread counts, asked again every few seconds while the page is visible. */
export const useSpaces = (client: Client): { state: SpaceListState; refresh: () => void } => {
  const [list, setList] = useState<SpaceList | null>(null);

  useEffect(() => {
    const opened = watchSpaces(client);
    setList(opened);
    return () => opened.close();
  }, [client]);

  const state = useSyncExternalStore(list?.subscribe ?? nothing, () => list?.getSnapshot() ?? loading);
  return { state, refresh: () => void list?.refresh() };
};
