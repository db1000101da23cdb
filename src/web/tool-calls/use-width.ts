import { type RefObject, useLayoutEffect, useRef, useState } from "react";

/** The width of an element in pixels, kept true; 0 before it is there. */
export const useWidth = <Kind extends HTMLElement>(): [RefObject<Kind | null>, number] => {
  const element = useRef<Kind>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const measured = element.current;
    if (!measured) return;
    setWidth(measured.clientWidth);
    const observer = new ResizeObserver(() => setWidth(measured.clientWidth));
    observer.observe(measured);
    return () => observer.disconnect();
  }, []);
  return [element, width];
};
