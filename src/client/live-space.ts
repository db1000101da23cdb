import { ulid } from "ulid";
import * as z from "zod";
import { type ClientFrame, ServerFrame } from "../protocol/events.ts";
import type { Message, RelatedItem } from "../protocol/message.ts";
import { MessageText } from "../protocol/text.ts";
import { ColloquyError, errorCodes } from "../shared/errors.ts";
import { type ConnectionTimings, followStream } from "./connection.ts";
import type { Credentials } from "./credentials.ts";
import { messageOf } from "./http.ts";
import { reduce } from "./reduce.ts";
import { initialSpaceState, type OutgoingMessage, type SpaceFrame, type SpaceState } from "./space-state.ts";
import { createStore, type Store } from "./store.ts";

type Problem = { code: string; detail: string };

/** Oldest first. `hasOlder`: the timeline has messages before these. */
export type MessagePage = { items: Message[]; hasOlder: boolean };

/**
 * One space, followed live.
 *
 * Invariants
 * 1. A message that was given to `send` is in `outgoing` or in `messages`. After each welcome the unanswered ones are
 *    sent again under their clientKeys, so a dropped connection neither loses nor doubles a message.
 * 2. Every opening resumes from the newest event that was reduced.
 *    An `outbox` keeps them beyond the life of this object, for the same person alone.
 * 3. History is loaded by HTTP only after a welcome, so that no event is missed between the page and the stream. A
 *    suspended space has no events: its history is loaded at once.
 */
export type LiveSpace = Store<SpaceState> & {
  /**
   * Sends a message and returns its clientKey. While the connection is down, the message waits in `outgoing`.
   * Throws `invalid_request` for a text that is blank, or over 32 KiB of UTF-8.
   */
  send(text: string, options?: { replyTo?: string }): string;
  retry(clientKey: string): void;
  discard(clientKey: string): void;
  /** Tells the other members that this person is typing, at most every 3 s. */
  typing(): void;
  /** Shows the new text at once, and takes it back where it is refused: then it rejects with a ColloquyError. */
  editMessage(messageId: string, text: string): Promise<void>;
  /** The same for a deletion. Resolves for an admin to what agents wrote down of the message. */
  deleteMessage(messageId: string): Promise<RelatedItem[]>;
  markRead(messageId: string): void;
  /** Loads the messages before the window. Rejects with a ColloquyError. */
  loadOlder(): Promise<void>;
  /** Loads the history again after it failed. */
  reloadHistory(): void;
  /** Reports refusals that belong to no message, and malformed frames. */
  onProblem(listener: (problem: Problem) => void): () => void;
  close(): void;
};

export type OpenSpaceOptions = {
  /** Resume after this event. Default: from now on. */
  cursor?: number;
  timings?: Partial<ConnectionTimings>;
  outbox?: Outbox;
};

/** Where one person's messages to this space are kept until they are in its log. Null: there are none. */
export type Outbox = { load(): string | null; keep(text: string | null): void };

const Status = z.union([
  z.object({ kind: z.literal("pending") }),
  z.object({ kind: z.literal("failed"), code: z.enum(errorCodes), message: z.string() }),
]);
const Own = { clientKey: z.string(), text: z.string(), replyTo: z.string().exactOptional() };
const Kept = z.array(z.object({ ...Own, createdAt: z.iso.datetime(), status: Status }));

const keptIn = (outbox: Outbox | undefined): OutgoingMessage[] => {
  try {
    return Kept.parse(JSON.parse(outbox?.load() ?? "[]"));
  } catch {
    return []; // not written by this client
  }
};

/** What a live space needs of its client. */
export type SpaceAccess = {
  credentials: Credentials;
  streamAddress(cursor: number | null): string;
  listMessages(spaceId: string, page: { before?: number; limit: number }): Promise<MessagePage>;
  getSpace(spaceId: string): Promise<{ suspended?: true | undefined }>;
  editMessage(spaceId: string, messageId: string, text: string): Promise<Message>;
  deleteMessage(spaceId: string, messageId: string): Promise<{ message: Message; related: RelatedItem[] }>;
};

const pageSize = 50;
const typingEveryMs = 3000;

export const openLiveSpace = (access: SpaceAccess, spaceId: string, options: OpenSpaceOptions = {}): LiveSpace => {
  const { outbox } = options;
  const initial = { ...initialSpaceState(spaceId, options.cursor ?? null), outgoing: keptIn(outbox) };
  const { update, ...store } = createStore<SpaceState>(initial);
  const problemListeners = new Set<(problem: Problem) => void>();
  let typedAt = 0;
  let tickTimer: ReturnType<typeof setTimeout> | undefined;
  /** Counts the windows that were given up. A page that was requested for an earlier window is dropped. */
  let windowNumber = 0;

  const state = (): SpaceState => store.getSnapshot();
  const apply = (frame: SpaceFrame): void => {
    const before = state().outgoing;
    update((current) => reduce(current, frame, Date.now()));
    const { outgoing } = state();
    if (outgoing !== before) outbox?.keep(outgoing.length === 0 ? null : JSON.stringify(outgoing));
  };
  const report = (problem: Problem): void => {
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

  /** Loads the messages before `before`, or the newest ones. */
  const loadPage = async (before?: number): Promise<void> => {
    const asked = windowNumber;
    apply({ type: "local.page.begin" });
    try {
      const page = await access.listMessages(spaceId, { limit: pageSize, ...(before && { before }) });
      if (asked === windowNumber) apply({ type: "local.page", messages: page.items, hasOlder: page.hasOlder });
    } catch (error) {
      if (asked === windowNumber) apply({ type: "local.page.failed", message: messageOf(error) });
      throw error;
    }
  };
  const loadLatest = (): void => void loadPage().catch(() => undefined); // `history` shows the failure

  const welcomed = (resumed: boolean): void => {
    if (!resumed) windowNumber += 1;
    if (state().history.status !== "ready") loadLatest();
    for (const { clientKey } of state().outgoing) sendOutgoing(clientKey);
  };

  const scheduleTick = (): void => {
    clearTimeout(tickTimer);
    const next = Math.min(...state().typing.map((typing) => typing.until));
    if (Number.isFinite(next)) tickTimer = setTimeout(() => apply({ type: "local.tick" }), next - Date.now() + 1);
  };

  const receive = (frame: ServerFrame): void => {
    apply(frame);
    if (frame.type === "welcome") welcomed(frame.resumed);
    if (frame.type === "member.typing") scheduleTick();
    if (frame.type === "error" && frame.clientKey === undefined) report(frame);
  };

  /** Shows a change as done while it is asked for. */
  const change = async <Answer extends { message: Message }>(
    messageId: string,
    shown: Partial<Message>,
    ask: () => Promise<Answer>,
  ): Promise<Answer> => {
    apply({ type: "local.change", messageId, shown });
    try {
      const answer = await ask();
      apply({ type: "local.changed", messageId, message: answer.message });
      return answer;
    } catch (error) {
      apply({ type: "local.change.failed", messageId });
      throw error;
    }
  };

  const following = followStream(
    {
      credentials: access.credentials,
      schema: ServerFrame,
      address: () => access.streamAddress(state().cursor),
      probe: async () => {
        const { suspended = false } = await access.getSpace(spaceId);
        apply({ type: "local.suspended", isSuspended: suspended });
        if (suspended && state().history.status === "loading") loadLatest();
      },
      frame: receive,
      malformed: (detail) => report({ code: "bad_frame", detail }),
      connection: (connection) => {
        if (connection.status === "closed") clearTimeout(tickTimer);
        apply({ type: "local.connection", connection });
      },
    },
    options.timings,
  );

  return {
    ...store,
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
    editMessage: async (messageId, text) => {
      checkText(text);
      const editedAt = new Date().toISOString();
      const ask = async () => ({ message: await access.editMessage(spaceId, messageId, text) });
      await change(messageId, { text, editedAt }, ask);
    },
    deleteMessage: async (messageId) => {
      const { you } = state();
      const deleted = { at: new Date().toISOString(), ...(you && { by: { id: you.id, name: you.name } }) };
      const { related } = await change(messageId, { deleted }, () => access.deleteMessage(spaceId, messageId));
      return related;
    },
    markRead: (messageId) => {
      if (isOpen()) sendFrame({ type: "read", messageId });
    },
    loadOlder: async () => {
      const { history, messages } = state();
      const first = messages[0];
      if (history.status === "ready" && history.hasOlder && !history.loadingOlder && first) await loadPage(first.seq);
    },
    reloadHistory: loadLatest,
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
