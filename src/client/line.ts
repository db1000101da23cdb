import { LineEvent } from "../protocol/line.ts";
import type { SpaceListItem } from "../protocol/space.ts";
import { ColloquyError } from "../shared/errors.ts";
import { type ConnectionTimings, followStream } from "./connection.ts";
import type { Credentials } from "./credentials.ts";
import { type LineState, listed, reduceLine, summaryOf } from "./line-state.ts";
import { createStore, type Store } from "./store.ts";

/**
 * A person's line: all their spaces, as they stand, over one socket. Nothing is polled.
 *
 * Invariants
 * 1. Each opening asks for all that is unread: what was read meanwhile is forgotten.
 * 2. A line that is down keeps what it knows, and says why in `problem`. One that does not open, as in a suspended
 *    workspace, shows the spaces as a request tells them.
 * 3. Each opening tells anew whether the page is looked at.
 */
export type Line = Store<LineState> & {
  /** Tells whether the person looks at this page now: then nothing alerts them that is to do so while they are away. */
  look(isVisible: boolean): void;
  close(): void;
};

/** What a line needs of its client. */
export type LineAccess = {
  credentials: Credentials;
  lineAddress(): string;
  /** All spaces by HTTP: a socket that does not open cannot say why. */
  listSpaces(): Promise<SpaceListItem[]>;
};

export const openLine = (access: LineAccess, timings: Partial<ConnectionTimings> = {}): Line => {
  const { update, ...store } = createStore<LineState>({ status: "loading" });
  const fail = (problem: ColloquyError): void =>
    update((state) => (state.status === "ready" ? { ...state, problem } : { status: "failed", problem }));

  let isLookedAt = false;
  const tellLooks = (): void => void following.send(JSON.stringify({ type: "visible", visible: isLookedAt }));

  const following = followStream(
    {
      credentials: access.credentials,
      schema: LineEvent,
      address: access.lineAddress,
      probe: async () => {
        try {
          const spaces = (await access.listSpaces()).map(summaryOf);
          update((state) => (state.status === "ready" ? state : listed(spaces)));
        } catch (error) {
          if (error instanceof ColloquyError) fail(error);
          throw error;
        }
      },
      frame: (event) => {
        if (event.type === "welcome" && isLookedAt) tellLooks();
        update((state) => reduceLine(state, event));
      },
      connection: (state) => {
        if (state.status !== "closed" || state.reason === "closed") return;
        fail(new ColloquyError("token_expired", "Your session has ended: sign in again"));
      },
    },
    timings,
  );

  return {
    ...store,
    look: (isVisible) => {
      if (isVisible === isLookedAt) return;
      isLookedAt = isVisible;
      tellLooks();
    },
    close: () => following.end("closed"),
  };
};
