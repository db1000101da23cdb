import type { AnsweredToolCall, ClaimToolCall, ToolAnswer, WaitingToolCall } from "../../protocol/tool-call.ts";
import { isoTime } from "../../shared/clock.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { sameJson } from "../../shared/same-json.ts";
import type { CallRow } from "../schema.ts";
import type { CallServices } from "./calls.ts";
import { statusOf } from "./due.ts";
import { outcomeOfAnswer, serverRedactor } from "./push.ts";

/** What servers that execute `external` tools see of a call, and do with it. */
export const waitingCall = (agentId: string, row: CallRow): WaitingToolCall => ({
  toolCallId: row.callId,
  agentId,
  name: row.tool.name,
  input: row.input,
  createdAt: isoTime(row.createdAt),
  dueAt: isoTime(row.dueAt ?? row.createdAt),
  ...(row.lease === null ? {} : { claim: { holder: row.lease.holder, until: isoTime(row.lease.until) } }),
});

const external = (services: CallServices, callId: string): CallRow => {
  const row = services.calls.get(callId);
  if (row?.tool.executionType === "external" && row.phase !== "asked") return row;
  throw new ColloquyError("not_found", "there is no such call that waits for a server, or it is long over");
};

const isOver = ({ phase }: CallRow): boolean => phase === "answered" || phase === "done";

/** It is its holder's alone until the lease ends. */
export const claimCall = (
  services: CallServices,
  callId: string,
  { holder, leaseSeconds }: ClaimToolCall,
): WaitingToolCall => {
  const row = external(services, callId);
  if (isOver(row)) throw new ColloquyError("gone", `the call is over: it is ${statusOf(row)}`);
  const now = services.clock.now();
  if (row.lease && row.lease.until > now && row.lease.holder !== holder) {
    throw new ColloquyError("conflict", `it is claimed until ${isoTime(row.lease.until)}: take another, or wait`);
  }
  const lease = { holder, until: now + leaseSeconds * 1000 };
  // What is listed is listed anew, with the lease.
  const claimed = services.calls.change(callId, { lease, listed: false });
  return waitingCall(services.identity.get().id, claimed ?? row);
};

/** The first answer wins. */
export const answerCall = async (
  services: CallServices,
  callId: string,
  answer: ToolAnswer,
): Promise<AnsweredToolCall> => {
  const redactor = await serverRedactor(services, external(services, callId));
  const row = external(services, callId);
  const outcome = outcomeOfAnswer(answer, row, redactor);
  if (!isOver(row)) {
    services.transaction(() => {
      services.calls.settle(callId, outcome);
      services.armLoop();
    });
    return { toolCallId: callId, status: outcome.status, created: true };
  }
  if (row.outcome?.status === "canceled" || row.outcome?.status === "expired") {
    throw new ColloquyError("gone", `nobody waits for it any more: the call is ${row.outcome.status}`);
  }
  if (!sameJson(row.outcome?.value, outcome.value)) {
    throw new ColloquyError("conflict", "the call was answered before, with something else");
  }
  return { toolCallId: callId, status: outcome.status, created: false };
};
