import type { EntityRef } from "../../src/protocol/rpc.ts";
import type { Aftermath, Space } from "./aftermath.ts";
import type { Stage } from "./stage.ts";

/** What somebody outside does, once the house is at rest, or as soon as `when` says. */
export type Act = {
  does: () => Promise<unknown>;
  when?: () => Promise<boolean>;
  /**
   * Tells whether it was done, for a caller that got no answer and else does it again. Left out: the caller cannot
   * look, and does it again.
   */
  done?: () => Promise<boolean>;
};

/**
 * One thing that happens in a house. `unknown` names where the end cannot be equal: a call that must not be repeated
 * and was cut has an unknown outcome. It says at which of the point's passes, and how often its server was asked by
 * then.
 */
export type Scenario = {
  name: string;
  open: (stage: Stage) => Promise<Act[]>;
  unknown?: { [point: string]: { pass: number; effects: number } };
  /** The outcome then expected, made of the usual one. */
  withUnknown?: (without: Aftermath) => Aftermath;
  /** How much longer it may take where a program's lease has to run out. */
  waits?: { [point: string]: number };
  /** How often the server is asked by a call that may be repeated, and is. */
  repeated?: { [point: string]: { pass: number; effects: number } };
  /**
   * The call goes on beside its run. If the run is cut meanwhile, the call's outcome is told as unknown, or all is as
   * without the crash.
   */
  beside?: true;
};

export const says = (space: Space, who: EntityRef, words: string): Act => ({
  does: () => space.post(who, words),
  done: async () => (await space.texts()).some((line) => line.endsWith(`: ${words}`)),
});
