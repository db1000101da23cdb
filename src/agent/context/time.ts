/** Seconds are enough for a reader, and shorter. */
export const shortTime = (iso: string): string => iso.replace(/\.\d+(Z|[+-]\d\d:\d\d)$/, "$1");

const minuteMs = 60_000;
const hourMinutes = 60;
const dayHours = 24;

/** The time from now, as people say it: `in 17h 53m`, `in 3d 2h`; a past time is `due now`. */
export const fromNow = (nowIso: string, thenIso: string): string => {
  const minutes = Math.floor((Date.parse(thenIso) - Date.parse(nowIso)) / minuteMs);
  if (minutes < 1) return minutes < 0 ? "due now" : "in less than 1m";
  const hours = Math.floor(minutes / hourMinutes);
  if (hours === 0) return `in ${minutes}m`;
  if (hours < dayHours) return `in ${hours}h ${String(minutes % hourMinutes).padStart(2, "0")}m`;
  return `in ${Math.floor(hours / dayHours)}d ${hours % dayHours}h`;
};
