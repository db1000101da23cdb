import { sameText } from "./same-text.ts";

/** Whether `presented` is the operator's key, in time that tells nothing. Without a key set, nobody is the operator. */
export const isOperator = (adminKey: string | undefined, presented: string): boolean =>
  adminKey !== undefined && adminKey !== "" && sameText(adminKey, presented);
