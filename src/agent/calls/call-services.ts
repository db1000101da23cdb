import type { Crashable } from "../../shared/fault.ts";
import type { BlockServices } from "../memory/blocks/block-services.ts";
import type { Runs } from "../runs.ts";
import type { Calls } from "./calls.ts";

/** What the modules that make calls and see them answered work with. */
export type CallServices = BlockServices & {
  calls: Calls;
  runs: Runs;
  /** Runs `work` in one SQLite transaction: all of it or nothing is stored. */
  transaction<T>(work: () => T): T;
  /** The object itself, for fault points. */
  object: Crashable;
};
