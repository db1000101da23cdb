import type { SpaceListItem } from "../protocol/space.ts";
import { ColloquyError } from "../shared/errors.ts";
import { allItems, type Client } from "./client.ts";
import { createStore, type Store } from "./store.ts";

/**
 * A person's spaces with their unread counts, kept fresh by polling, since a space's stream reports only itself.
 * Events of other spaces show after at most one interval; `refresh` shows them at once.
 *
 * Invariants
 * 1. One refresh runs at a time. A refresh that is asked for meanwhile runs after it.
 * 2. While `isAwake` returns false, the timer requests nothing.
 */
export type SpaceListState =
  | { status: "loading" }
  | { status: "ready"; spaces: readonly SpaceListItem[]; problem: ColloquyError | null }
  | { status: "failed"; problem: ColloquyError };

export type SpaceList = Store<SpaceListState> & {
  refresh(): Promise<void>;
  close(): void;
};

export type SpaceListOptions = {
  intervalMs?: number;
  /** Default: whether the page is visible; true without a page. */
  isAwake?: () => boolean;
};

const pageIsVisible = (): boolean => globalThis.document === undefined || !globalThis.document.hidden;

export const watchSpaces = (client: Pick<Client, "listSpaces">, options: SpaceListOptions = {}): SpaceList => {
  const { intervalMs = 5000, isAwake = pageIsVisible } = options;
  const { update, ...store } = createStore<SpaceListState>({ status: "loading" });
  let running: Promise<void> | null = null;
  let isAsked = false;
  let closed = false;

  const once = async (): Promise<void> => {
    try {
      const spaces = await allItems((page) => client.listSpaces({ limit: 50, ...page }));
      if (!closed) update(() => ({ status: "ready", spaces, problem: null }));
    } catch (error) {
      if (!(error instanceof ColloquyError)) throw error;
      if (closed) return;
      update((state) =>
        state.status === "ready" ? { ...state, problem: error } : { status: "failed", problem: error },
      );
    }
  };

  const run = async (): Promise<void> => {
    try {
      while (isAsked && !closed) {
        isAsked = false;
        await once();
      }
    } finally {
      running = null;
    }
  };
  const refresh = (): Promise<void> => {
    isAsked = true;
    running ??= run();
    return running;
  };

  const wake = (): void => {
    if (isAwake()) void refresh();
  };
  const timer = setInterval(wake, intervalMs);
  globalThis.document?.addEventListener("visibilitychange", wake);
  void refresh();

  return {
    ...store,
    refresh,
    close: () => {
      closed = true;
      clearInterval(timer);
      globalThis.document?.removeEventListener("visibilitychange", wake);
    },
  };
};
