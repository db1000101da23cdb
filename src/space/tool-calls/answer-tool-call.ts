import type { Principal } from "../../protocol/principal.ts";
import type { ToolAnswer } from "../../protocol/tool-call.ts";
import { isoTime } from "../../shared/clock.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { maxAnswerBytes } from "../bounds.ts";
import type { MemberRow } from "../members.ts";
import { type Parts, record } from "../parts.ts";
import { acting } from "../rights.ts";
import type { SettingsRow } from "../settings.ts";
import type { CallMessage } from "./call-message.ts";
import { changeCall } from "./change.ts";
import { expire } from "./expiry.ts";
import { messageOfCall } from "./record-tool-call.ts";
import type { CallRow } from "./tool-calls.ts";
import { judge } from "./verdict.ts";

/** `updatedSeq`: the place in the log of the event that tells it. */
export type AnsweredCall = { message: CallMessage; created: boolean; updatedSeq: number };

/** A person answers a call that waits. Who may, and what counts, is decided here alone. */
export const answerToolCall = (
  parts: Parts,
  principal: Principal,
  toolCallId: string,
  answer: ToolAnswer,
): AnsweredCall => {
  const { space, member } = acting(parts, principal);
  const bytes = new TextEncoder().encode(JSON.stringify(answer)).length;
  if (bytes > maxAnswerBytes) {
    throw new ColloquyError(
      "payload_too_large",
      `An answer has at most ${maxAnswerBytes} bytes of JSON (maxAnswerBytes); this one has ${bytes}`,
    );
  }
  const found = rowOf(parts, space, toolCallId);
  checkMay(member, found);
  const row = hasExpired(parts, found) ? rowOf(parts, space, toolCallId) : found;
  const given = { entityId: member.entityId, name: member.name, at: isoTime(parts.clock.now()), answer };
  const verdict = judge(row.message.toolCall, given);
  if (!verdict) return { message: row.message, created: false, updatedSeq: row.updatedSeq };
  const message = record(parts, (append) => changeCall(parts, append, row, verdict.call, verdict.outcome));
  return { message, created: true, updatedSeq: parts.log.head().seq };
};

const rowOf = (parts: Parts, space: SettingsRow, toolCallId: string): CallRow => {
  const stored = parts.log.findMessage(messageOfCall(parts, space, toolCallId));
  const row = stored && parts.toolCalls.at(stored.seq);
  if (row) return row;
  throw new ColloquyError("not_found", `There is no tool call ${toolCallId} in this space`);
};

/** Whether it has ended just now, before its timer came to it. */
const hasExpired = (parts: Parts, row: CallRow): boolean => {
  if (row.isOpen && !parts.members.find(row.agentId)) {
    throw new ColloquyError("gone", "The agent has left the space: nobody waits for an answer");
  }
  if (row.expiresAt === null || row.expiresAt > parts.clock.now()) return false;
  expire(parts, [row]);
  return true;
};

const checkMay = ({ entityId, type }: MemberRow, { message }: CallRow): void => {
  if (type !== "human") throw new ColloquyError("forbidden", "Only people answer tool calls");
  const { approvers } = message.toolCall.awaits ?? {};
  if (approvers === undefined || approvers.includes(entityId)) return;
  throw new ColloquyError("forbidden", "This tool call asks others: you are not one of its approvers");
};
