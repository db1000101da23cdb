import { createHash, timingSafeEqual } from "node:crypto";

const digest = (text: string): Buffer => createHash("sha256").update(text).digest();

/** Whether `presented` is the operator's key, in time that tells nothing. Without a key set, nobody is the operator. */
export const isOperator = (adminKey: string | undefined, presented: string): boolean =>
  adminKey !== undefined && adminKey !== "" && timingSafeEqual(digest(adminKey), digest(presented));
