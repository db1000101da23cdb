import type { MessageRouting } from "../../protocol/message.ts";
import type { Principal } from "../../protocol/principal.ts";
import { isoTime } from "../../shared/clock.ts";
import { ColloquyError } from "../../shared/errors.ts";
import type { Parts } from "../parts.ts";
import { seen } from "../rights.ts";

/** What the router decided about a message, or that it has yet to; `not_found` where it was not asked. */
export const routingOf = (parts: Parts, principal: Principal, messageId: string): MessageRouting => {
  seen(parts, principal);
  const row = parts.log.findMessage(messageId);
  const asked = row && parts.decisions.find(row.seq);
  if (!asked) throw new ColloquyError("not_found", `The space's router was not asked about ${messageId}`);
  if (!asked.decision) return { messageId, outcome: "pending", agents: [] };
  const { at, ...decision } = asked.decision;
  return { messageId, ...decision, at: isoTime(at) };
};
