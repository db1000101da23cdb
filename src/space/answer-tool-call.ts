import type { Principal } from "../protocol/principal.ts";
import type { ToolAnswer } from "../protocol/tool-call.ts";
import { isoTime } from "../shared/clock.ts";
import { ColloquyError } from "../shared/errors.ts";
import { maxAnswerBytes } from "./bounds.ts";
import type { MemberRow } from "./members.ts";
import { messageOfCall } from "./record-tool-call.ts";
import { acting } from "./rights.ts";
import { record, type SpaceServices } from "./services.ts";
import type { SettingsRow } from "./settings.ts";
import { expire } from "./tool-call-expiry.ts";
import type { CallRow } from "./tool-calls/tool-calls.ts";
import { changeCall } from "./tool-calls/tool-calls.ts";
import { judge } from "./tool-calls/verdict.ts";
import type { CallMessage } from "./types.ts";

/** `updatedSeq`: the place in the log of the event that tells it. */
export type AnsweredCall = { message: CallMessage; created: boolean; updatedSeq: number };

/** A person answers a call that waits. Who may, and what counts, is decided here alone. */
export const answerToolCall = (
  services: SpaceServices,
  principal: Principal,
  toolCallId: string,
  answer: ToolAnswer,
): AnsweredCall => {
  const { space, member } = acting(services, principal);
  const bytes = new TextEncoder().encode(JSON.stringify(answer)).length;
  if (bytes > maxAnswerBytes) {
    throw new ColloquyError(
      "payload_too_large",
      `An answer has at most ${maxAnswerBytes} bytes of JSON (maxAnswerBytes); this one has ${bytes}`,
    );
  }
  const found = rowOf(services, space, toolCallId);
  checkMay(member, found);
  const row = hasExpired(services, found) ? rowOf(services, space, toolCallId) : found;
  const given = { entityId: member.entityId, name: member.name, at: isoTime(services.clock.now()), answer };
  const verdict = judge(row.message.toolCall, given);
  if (!verdict) return { message: row.message, created: false, updatedSeq: row.updatedSeq };
  const message = record(services, (append) => changeCall(services, append, row, verdict.call, verdict.outcome));
  return { message, created: true, updatedSeq: services.log.head().seq };
};

const rowOf = (services: SpaceServices, space: SettingsRow, toolCallId: string): CallRow => {
  const stored = services.log.findMessage(messageOfCall(services, space, toolCallId));
  const row = stored && services.toolCalls.at(stored.seq);
  if (row) return row;
  throw new ColloquyError("not_found", `There is no tool call ${toolCallId} in this space`);
};

/** Whether it has ended just now, before its timer came to it. */
const hasExpired = (services: SpaceServices, row: CallRow): boolean => {
  if (row.isOpen && !services.members.find(row.agentId)) {
    throw new ColloquyError("gone", "The agent has left the space: nobody waits for an answer");
  }
  if (row.expiresAt === null || row.expiresAt > services.clock.now()) return false;
  expire(services, [row]);
  return true;
};

const checkMay = ({ entityId, type }: MemberRow, { message }: CallRow): void => {
  if (type !== "human") throw new ColloquyError("forbidden", "Only people answer tool calls");
  const { approvers } = message.toolCall.awaits ?? {};
  if (approvers === undefined || approvers.includes(entityId)) return;
  throw new ColloquyError("forbidden", "This tool call asks others: you are not one of its approvers");
};
