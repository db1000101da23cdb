import type { CallServices } from "../calls/calls.ts";
import type { DedupeKeys } from "./dedupe-keys.ts";
import type { Hooks } from "./hooks.ts";
import type { Inbox } from "./inbox.ts";
import type { Roots } from "./roots.ts";
import type { Waits } from "./waits.ts";

/** The services of the modules that take events in. */
export type InboxServices = CallServices & {
  inbox: Inbox;
  dedupeKeys: DedupeKeys;
  hooks: Hooks;
  roots: Roots;
  waits: Waits;
};
