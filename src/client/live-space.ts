import { ulid } from "ulid";
import type { ClientFrame, ErrorFrame } from "../protocol/events.ts";
import { MessageText } from "../protocol/text.ts";
import { ColloquyError } from "../shared/errors.ts";
import type { ConnectionTimings } from "./connection.ts";
import type { Credentials } from "./credentials.ts";
import { followStream } from "./follow-stream.ts";
import { parseFrame } from "./frames.ts";
import type { MessagePage } from "./messages.ts";
import { reduce } from "./reduce.ts";
import { initialSpaceState, type SpaceFrame, type SpaceState } from "./space-state.ts";
import { createStore, type Store } from "./store.ts";

/**
 * One space, followed live.
 *
 * Invariants
 * 1. A message that was handed to `send` is in `outgoing` or in `messages`: each welcome sends again, under the
 *    same clientKey, all that has no answer, so a dropped connection neither loses nor doubles one.
 * 2. Every opening resumes from the newest event that was reduced.
 * 3. History is loaded by HTTP only after a welcome, so that nothing falls between the page and the stream.
 */
export type LiveSpace = Store<SpaceState> & {
  /**
   * Sends a message and answers its clientKey; where the connection is down, it waits in `outgoing`.
   * Throws `invalid_request` for a text that no space takes (blank, or over 32 KiB of UTF-8).
   */
  send(text: string, options?: { replyTo?: string }): string;
  retry(clientKey: string): void;
  discard(clientKey: string): void;
  /** Tells the others that this person is typing, at most every 3 s. */
  typing(): void;
  markRead(messageId: string): void;
  /** Loads the messages before the window. Rejects with a ColloquyError. */
  loadOlder(): Promise<void>;
  /** After `history` failed. */
  reloadHistory(): void;
  /** Refusals that belong to no message, and frames that cannot be understood. */
  onProblem(listener: (problem: { code: string; detail: string }) => void): () => void;
  close(): void;
};

export type OpenSpaceOptions = {
  /** Resume after this event; left out: from now on. */
  cursor?: number;
  timings?: Partial<ConnectionTimings>;
};

/** What a live space needs of its client. */
export type SpaceAccess = {
  streamAddress(spaceId: string, cursor: number | null): string;
  credentials: Credentials;
  listMessages(spaceId: string, page: { before?: number; limit: number }): Promise<MessagePage>;
  getSpace(spaceId: string): Promise<unknown>;
};

const pageSize = 50;
const typingEveryMs = 3000;

export const openLiveSpace = (access: SpaceAccess, spaceId: string, options: OpenSpaceOptions = {}): LiveSpace => {
  const store = createStore(initialSpaceState(spaceId, options.cursor ?? null));
  const problemListeners = new Set<(problem: { code: string; detail: string }) => void>();
  let typedAt = 0;
  let tickTimer: ReturnType<typeof setTimeout> | undefined;
  /** Counts the windows that were given up: a page that was asked for before belongs to none of the later ones. */
  let windowNumber = 0;

  const apply = (frame: SpaceFrame): void => store.update((state) => reduce(state, frame, Date.now()));
  const state = (): SpaceState => store.getSnapshot();
  const report = (problem: { code: string; detail: string }): void => {
    for (const listener of problemListeners) listener(problem);
  };
  const sendFrame = (frame: ClientFrame): boolean => following.send(JSON.stringify(frame));
  const isOpen = (): boolean => state().connection.status === "open";

  const sendOutgoing = (clientKey: string): void => {
    const outgoing = state().outgoing.find((one) => one.clientKey === clientKey);
    if (outgoing?.status.kind !== "pending" || !isOpen()) return;
    const { text, replyTo } = outgoing;
    sendFrame({ type: "message.send", clientKey, text, ...(replyTo ? { replyTo } : {}) });
  };

  const loadLatest = async (): Promise<void> => {
    const asked = windowNumber;
    try {
      const page = await access.listMessages(spaceId, { limit: pageSize });
      if (asked === windowNumber) apply({ type: "local.latest", messages: page.items, hasOlder: page.hasOlder });
    } catch (error) {
      if (asked === windowNumber) apply({ type: "local.history.failed", message: messageOf(error) });
    }
  };

  const welcomed = (resumed: boolean): void => {
    if (!resumed) windowNumber += 1;
    if (state().history.status !== "ready") void loadLatest();
    for (const { clientKey } of state().outgoing) sendOutgoing(clientKey);
  };

  const scheduleTick = (): void => {
    clearTimeout(tickTimer);
    const next = Math.min(...state().typing.map((typing) => typing.until));
    if (Number.isFinite(next)) tickTimer = setTimeout(() => apply({ type: "local.tick" }), next - Date.now() + 1);
  };

  const receive = (text: string): void => {
    const parsed = parseFrame(text);
    if (parsed.kind === "malformed") report({ code: "bad_frame", detail: parsed.reason });
    if (parsed.kind !== "frame") return;
    apply(parsed.frame);
    if (parsed.frame.type === "welcome") welcomed(parsed.frame.resumed);
    if (parsed.frame.type === "member.typing") scheduleTick();
    if (isUnclaimed(parsed.frame)) report(parsed.frame);
  };

  const following = followStream(
    {
      credentials: access.credentials,
      address: () => access.streamAddress(spaceId, state().cursor),
      probe: () => access.getSpace(spaceId),
      text: receive,
      connection: (connection) => {
        if (connection.status === "closed") clearTimeout(tickTimer);
        apply({ type: "local.connection", connection });
      },
    },
    options.timings,
  );

  return {
    getSnapshot: store.getSnapshot,
    subscribe: store.subscribe,
    send: (text, { replyTo } = {}) => {
      checkText(text);
      const clientKey = ulid();
      const createdAt = new Date().toISOString();
      apply({ type: "local.send", clientKey, text, createdAt, ...(replyTo ? { replyTo } : {}) });
      sendOutgoing(clientKey);
      return clientKey;
    },
    retry: (clientKey) => {
      apply({ type: "local.retry", clientKey });
      sendOutgoing(clientKey);
    },
    discard: (clientKey) => apply({ type: "local.discard", clientKey }),
    typing: () => {
      if (!isOpen() || Date.now() - typedAt < typingEveryMs) return;
      typedAt = Date.now();
      sendFrame({ type: "typing" });
    },
    markRead: (messageId) => {
      if (isOpen()) sendFrame({ type: "read", messageId });
    },
    loadOlder: async () => {
      const { history, messages } = state();
      const first = messages[0];
      if (history.status !== "ready" || !history.hasOlder || history.loadingOlder || !first) return;
      const asked = windowNumber;
      apply({ type: "local.older.begin" });
      try {
        const page = await access.listMessages(spaceId, { before: first.seq, limit: pageSize });
        if (asked === windowNumber) apply({ type: "local.older", messages: page.items, hasOlder: page.hasOlder });
      } catch (error) {
        if (asked === windowNumber) apply({ type: "local.older.failed" });
        throw error;
      }
    },
    reloadHistory: () => {
      apply({ type: "local.history.retry" });
      void loadLatest();
    },
    onProblem: (listener) => {
      problemListeners.add(listener);
      return () => problemListeners.delete(listener);
    },
    close: () => following.end("closed"),
  };
};

const checkText = (text: string): void => {
  const parsed = MessageText.safeParse(text);
  if (parsed.success) return;
  throw new ColloquyError("invalid_request", `The message ${parsed.error.issues[0]?.message ?? "cannot be sent"}.`);
};

const isUnclaimed = (frame: SpaceFrame): frame is ErrorFrame => frame.type === "error" && frame.clientKey === undefined;

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
