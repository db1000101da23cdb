import { useEffect } from "react";
import type { Line, LineState, NotificationEvent } from "../../client/index.ts";
import { recall, remember } from "../storage.ts";
import { registration } from "./service-worker.ts";
import { asShown } from "./shown.ts";

/** So old it may be and still be news to who looks at the page: the line may have been away for a moment. */
const freshMs = 10_000;

/**
 * Which of these the page is to show, of those that came after `shownUpTo`. What is quiet the server decided. Who looks at
 * the page needs no old news, as there are when it is opened.
 */
export const toShow = (
  notifications: readonly NotificationEvent[],
  { shownUpTo, isHidden, now }: { shownUpTo: number; isHidden: boolean; now: number },
): NotificationEvent[] =>
  notifications.filter(
    ({ cursor, quiet, at }) => cursor > shownUpTo && !quiet && (isHidden || now - Date.parse(at) < freshMs),
  );

const mayShow = (): boolean => "Notification" in globalThis && Notification.permission === "granted";

/** One with the same id replaces the other. */
const show = async (news: NotificationEvent[]): Promise<void> => {
  const worker = await registration();
  for (const each of news) {
    const { title, options } = asShown(each);
    await worker?.showNotification(title, options);
  }
};

/** A line that opens tells of what is unread one by one, after its welcome: until then nothing counts as read. */
const settledMs = 250;

/** Takes back what was read, changed or deleted. What came after the place `upTo` is not among `unread`, and stays. */
const closeOthers = async (unread: readonly NotificationEvent[], upTo = Number.POSITIVE_INFINITY): Promise<void> => {
  const worker = await registration();
  const ids = new Set(unread.map(({ id }) => id));
  for (const shown of (await worker?.getNotifications()) ?? []) {
    if (!ids.has(shown.tag) && (shown.data?.cursor ?? 0) <= upTo) shown.close();
  }
};

/** Closes all of them. Whoever signs in next is not shown them. */
export const closeNotifications = (): Promise<void> => closeOthers([]);

/**
 * Shows the notifications of a line by the system, each once in this browser, tells the line whether the page is looked at, and
 * counts what is unread on the page's icon.
 */
export const useNotices = (entityId: string, state: LineState, live: Line | null): void => {
  const notifications = state.status === "ready" && state.problem === null ? state.notifications : null;
  const cursor = state.status === "ready" ? state.cursor : 0;
  useEffect(() => {
    if (notifications === null || !mayShow()) return;
    const key = `colloquy.shown.${entityId}`;
    const shownUpTo = Number(recall("kept", key) ?? cursor);
    const newest = Math.max(shownUpTo, ...notifications.map((each) => each.cursor));
    remember("kept", key, String(newest));
    void show(toShow(notifications, { shownUpTo, isHidden: document.hidden, now: Date.now() }));
    const timer = setTimeout(() => void closeOthers(notifications, newest), settledMs);
    return () => clearTimeout(timer);
  }, [entityId, notifications, cursor]);

  useEffect(() => {
    const look = (): void => live?.look(document.visibilityState === "visible");
    look();
    document.addEventListener("visibilitychange", look);
    return () => document.removeEventListener("visibilitychange", look);
  }, [live]);

  const unread = state.status === "ready" ? state.spaces.reduce((sum, space) => sum + space.unread, 0) : 0;
  useEffect(() => {
    navigator.setAppBadge?.(unread).catch(() => undefined);
    return () => void navigator.setAppBadge?.(0).catch(() => undefined);
  }, [unread]);
};
