import { useSyncExternalStore } from "react";

const events = ["focus", "blur", "visibilitychange", "pageshow"] as const;

const subscribe = (listener: () => void): (() => void) => {
  for (const event of events) addEventListener(event, listener);
  document.addEventListener("visibilitychange", listener);
  return () => {
    for (const event of events) removeEventListener(event, listener);
    document.removeEventListener("visibilitychange", listener);
  };
};

/** Whether the person has this page before the eyes: the tab is shown and its window has the focus. */
export const useWatching = (): boolean =>
  useSyncExternalStore(subscribe, () => !document.hidden && document.hasFocus());
