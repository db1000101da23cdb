import type { Root, TriggerSource } from "../protocol/rpc.ts";
import type { WakePolicy } from "../protocol/space.ts";

/**
 * What is decided about a message's wakes when it is stored, and kept beside it: a later delivery must not decide
 * otherwise because the space has changed since.
 */
export type Routing = { root: Root; wakePolicy: WakePolicy; mentions: string[]; pair: boolean };

/** Why a message wakes this agent, who is not its sender. `pair`: the space had two members. */
export const triggerSource = (routing: Routing, agentId: string): TriggerSource => {
  if (routing.mentions.includes(agentId)) return "mention";
  if (routing.pair) return "auto";
  return routing.wakePolicy === "every_message" ? "every_message" : "none";
};
