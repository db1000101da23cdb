import type { RouterDecision } from "../../protocol/message.ts";

/** `at` in milliseconds since the epoch. */
export type StoredDecision = RouterDecision & { at: number };
