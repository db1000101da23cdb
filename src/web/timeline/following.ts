import { useCallback, useRef } from "react";

/** How far above its end a list may stand and still show it. */
const nearPx = 60;

/** The list corrects its own place by up to so much: that is no scrolling of the reader. */
const correctionPx = 4;

/** While a person fills in a form, the timeline does not scroll away from it. */
const isAnswering = (): boolean => document.activeElement?.closest(".call-people") != null;

const pixelsBelow = (list: HTMLElement): number => list.scrollHeight - list.scrollTop - list.clientHeight;

export type Following = {
  /** For the element that scrolls. */
  scrollerRef: (list: HTMLElement | Window | null) => void;
  /** Whether new rows are to be scrolled to. */
  follows: () => boolean;
  /** Belongs before the list scrolls to a message by itself. */
  leaveEnd: (messageId: string) => void;
  /** Whether it last did so to this message, and the reader has done nothing since. */
  isLedTo: (messageId: string) => boolean;
};

/**
 * Keeps the end of a list in view while its reader is there, however fast the list grows or its frame shrinks. A reader
 * leaves the end by scrolling up, or to a row that a link leads to: what grows in several steps between two frames is no movement of theirs. Whoever
 * fills in a form comes back to the end when it is answered. `toEnd` scrolls; `onChange` hears whether the end is in view.
 */
export const useFollowing = (toEnd: () => void, onChange: (isAtEnd: boolean) => void): Following => {
  const follows = useRef(true);
  /** The message that a link led to, while the reader has done nothing since. */
  const ledTo = useRef<string | null>(null);
  const wasAtEnd = useRef(true);
  const tell = useCallback(
    (isAtEnd: boolean) => {
      if (wasAtEnd.current === isAtEnd) return;
      wasAtEnd.current = isAtEnd;
      onChange(isAtEnd);
    },
    [onChange],
  );
  const detach = useRef<(() => void) | null>(null);
  const scrollerRef = useCallback(
    (list: HTMLElement | Window | null) => {
      detach.current?.();
      if (!(list instanceof HTMLElement)) return;
      let isTouched = false;
      let [top, height] = [list.scrollTop, list.scrollHeight];
      const keepUp = (): void => {
        if (follows.current && !isAnswering()) toEnd();
        tell(pixelsBelow(list) <= nearPx);
      };
      const scrolled = (): void => {
        // A list that shrinks at its end moves up by as much, and the list corrects its own place by a few pixels.
        const up = top - list.scrollTop;
        const isUp = isTouched && up > Math.max(0, height - list.scrollHeight) + correctionPx;
        if (isUp || up <= 0) [top, height] = [list.scrollTop, list.scrollHeight];
        const below = pixelsBelow(list);
        if (isUp) follows.current = below < 1;
        else if (below <= nearPx && ledTo.current === null) follows.current = true;
        if (isTouched && below > nearPx) keepUp();
        else tell(below <= nearPx);
      };
      const observer = new ResizeObserver(keepUp);
      for (const box of [list, ...list.querySelectorAll(":scope > * > *")])
        observer.observe(box, { box: "border-box" });
      const listening = new AbortController();
      const { signal } = listening;
      list.addEventListener("scroll", scrolled, { passive: true, signal });
      // While it finds its first place the list goes up and down by itself.
      for (const type of ["pointerdown", "wheel", "keydown", "focusin"]) {
        document.addEventListener(type, () => (isTouched = true), { once: true, capture: true, passive: true, signal });
      }
      const free = (): null => (ledTo.current = null);
      for (const type of ["pointerdown", "wheel", "keydown"])
        document.addEventListener(type, free, { capture: true, passive: true, signal });
      detach.current = () => {
        observer.disconnect();
        listening.abort();
      };
      // A list begins at its end.
      follows.current = true;
    },
    [tell, toEnd],
  );
  return {
    scrollerRef,
    follows: useCallback(() => follows.current && !isAnswering(), []),
    leaveEnd: useCallback((messageId) => {
      follows.current = false;
      ledTo.current = messageId;
    }, []),
    isLedTo: useCallback((messageId) => ledTo.current === messageId, []),
  };
};
