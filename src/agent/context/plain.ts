import { quote } from "./quote.ts";

/** A label, a cron or a time zone as it is; anything that might pass for more is quoted (S2). */
export const plain = (text: string): string =>
  /^[A-Za-z0-9_*?#@/,.+-]+(?: [A-Za-z0-9_*?#@/,.+-]+)*$/.test(text) ? text : quote(text);
