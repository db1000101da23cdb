import type { OwnWords, Root, TriggerSource } from "../protocol/rpc.ts";
import type { WakePolicy } from "../protocol/space.ts";
import type { SaidAt } from "../shared/stretches.ts";

/**
 * Facts that decide which agents a message wakes. They are stored with it: a later delivery must not decide otherwise
 * because the space has changed since.
 */
export type Routing = {
  root: Root;
  wakePolicy: WakePolicy;
  mentions: string[];
  /** The author of the message that it replies to. */
  repliedTo?: string | undefined;
  /** The space had two members. */
  pair: boolean;
  /** The space's router decides; until it has, the message is delivered to nobody. */
  asksRouter?: true | undefined;
  /** It wakes nobody: a tool call that shows. */
  quiet?: true | undefined;
  /** Its agent's mind that hears this space did not say it itself, and is told. */
  own?: OwnWords | undefined;
  /** Of words that were let out into a confidential space: the compartment that said them, and hears nothing here. */
  letOutBy?: string | undefined;
  /** For an edited message, and for one that was written long before it was said: since when its text has each stretch. */
  saidAt?: SaidAt | undefined;
  /** Messages of agents in other spaces that told this one as their origin. Its deletion keeps them, for the end of its space. */
  told?: string[] | undefined;
};

/** Why a message wakes this agent, who is not its sender. `chosen`: by the space's router, where it was asked. */
export const triggerSource = (routing: Routing, agentId: string, chosen: readonly string[]): TriggerSource => {
  if (routing.quiet) return "none";
  if (routing.asksRouter) return chosen.includes(agentId) ? "proactive_router" : "none";
  if (routing.mentions.includes(agentId)) return "mention";
  if (routing.pair) return "auto";
  return routing.wakePolicy === "every_message" ? "every_message" : "none";
};
