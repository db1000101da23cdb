import { useEffect, useState } from "react";

const minuteMs = 60_000;

/** The time, anew every half minute until `until`, every second in the last two minutes, and right after it. */
export const useNow = (until: string | undefined): number => {
  const [now, setNow] = useState(Date.now);
  const end = until === undefined ? 0 : Date.parse(until);
  useEffect(() => {
    const left = end - now;
    if (!(left > 0)) return;
    const timer = setTimeout(() => setNow(Date.now()), left > 2 * minuteMs ? minuteMs / 2 : Math.min(1000, left + 1));
    return () => clearTimeout(timer);
  }, [end, now]);
  return now;
};
