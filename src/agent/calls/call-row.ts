import type { calls } from "../schema.ts";

/** A call as it stands. */
export type CallRow = typeof calls.$inferSelect;
