import type { Message } from "../protocol/message.ts";
import type { Principal } from "../protocol/principal.ts";
import type { AgentToolCall } from "../protocol/rpc.ts";
import { textBytes } from "../protocol/text.ts";
import type { ToolAnswer, ToolCall } from "../protocol/tool-call.ts";
import type { ImpersonatedApprovals } from "../protocol/workspace.ts";
import { isoTime } from "../shared/clock.ts";
import { ColloquyError } from "../shared/errors.ts";
import { isOwnedBy } from "../shared/ids.ts";
import { maxAnswerBytes, maxExpiredAtOnce, maxOpenToolCalls } from "./bounds.ts";
import { type Append, messageOf } from "./log/log.ts";
import { senderOf } from "./members.ts";
import { recordSpoken, requireHearing, requireSpeaker } from "./posting.ts";
import { acting, spaceIn } from "./rights.ts";
import type { CallMessage, CallOutcome } from "./schema.ts";
import { requireStorage, type SpaceServices } from "./services.ts";
import type { SettingsRow } from "./settings.ts";
import { noteOrigin } from "./told-origins.ts";
import { advanced, begun, type Given, judge } from "./tool-calls/call-state.ts";
import type { CallRow } from "./tool-calls/tool-calls.ts";
import type { Routing } from "./wake.ts";

/**
 * The events of tool calls that show here: agents show them, people answer, their time is up, their agent leaves, the space
 * becomes confidential.
 *
 * Invariants
 * 1. While people may answer a call, the timer `calls` is set no later than its time is up.
 * 2. One go ends a bounded number of calls; the timer is set to now while there are more.
 */
export const callsTimer = "calls";

/** The call whose id derives from space and call; undefined where it does not show here. */
const rowOf = ({ ids, log, toolCalls }: SpaceServices, space: SettingsRow, toolCallId: string): CallRow | undefined => {
  const stored = log.findMessage(ids.deriveOwned("msg", space.id, toolCallId));
  return stored && toolCalls.at(stored.seq);
};

/** Stores the call's new state and tells it; also to its agent where people decided. Belongs in a transaction. */
const change = (
  { toolCalls, settings }: SpaceServices,
  append: Append,
  row: CallRow,
  toolCall: ToolCall,
  outcome: CallOutcome | null = null,
): CallMessage => {
  const message = { ...row.message, toolCall };
  const { seq } = append({ type: "space.message.updated", message, outcome });
  toolCalls.store(message, seq, settings.find()?.confidentialFrom ?? null);
  return message;
};

/**
 * An agent shows a tool call, or says how one that shows stands now: each once, however often it is said (R2). Its
 * message is the end of the stream that its input was written in (D4), wakes nobody, and is answered as it is then.
 * A call that was canceled before it showed is `gone`.
 */
export const recordToolCall = (services: SpaceServices, said: AgentToolCall): Message => {
  const { agentId, toolCallId, messageId, streamId } = said;
  const { ids, live } = services;
  const space = spaceIn(services, said.workspaceId);
  const isOwn = ids.isIssued("tc", toolCallId) && isOwnedBy(toolCallId, said.mindId ?? agentId);
  if (!isOwn || messageId !== ids.deriveOwned("msg", space.id, toolCallId)) {
    const detail = `${toolCallId} is no tool call of ${agentId} whose message is ${messageId}`;
    throw new ColloquyError("invalid_request", detail);
  }
  const row = rowOf(services, space, toolCallId);
  if (!row) return deletedOf(services, messageId) ?? show(services, space, said);
  if (streamId !== undefined) live.repeated(streamId, agentId);
  const next = advanced(row.message.toolCall, said);
  return next === row.message.toolCall ? row.message : services.record((append) => change(services, append, row, next));
};

/** The message of a call, if it was deleted: nothing more of the call shows. */
const deletedOf = ({ log }: SpaceServices, messageId: string): Message | undefined => {
  const row = log.findMessage(messageId);
  return row && messageOf(row.frame);
};

const show = (services: SpaceServices, space: SettingsRow, said: AgentToolCall): CallMessage => {
  const { toolCalls, timers, clock } = services;
  const { messageId: id, root, origin, reads } = said;
  const streamId = services.live.endedBy(said.streamId);
  if (said.status === "canceled") throw new ColloquyError("gone", `${said.toolCallId} was canceled before it showed`);
  const sender = requireSpeaker(services, said);
  if (said.status === "requires_action") requireHearing(space, said.mindId);
  const toolCall = begun(said);
  requireStorage(services);
  if (toolCalls.countOpen(maxOpenToolCalls) === maxOpenToolCalls) {
    throw new ColloquyError(
      "limit_reached",
      `${maxOpenToolCalls} tool calls run or wait in this space (maxOpenToolCalls): let some of them end first`,
    );
  }
  const message = {
    ...{ id, spaceId: space.id, kind: "tool_call" as const, sender: senderOf(sender) },
    ...{ toolCall, origin, reads, streamId },
    createdAt: isoTime(clock.now()),
  };
  const saidAt: Routing["saidAt"] = said.writtenAt === undefined ? undefined : [[0, said.writtenAt]];
  const routing = { root, wakePolicy: space.wakePolicy, mentions: [], pair: false, quiet: true as const, saidAt };
  return recordSpoken(services, sender, streamId, (append) => {
    const row = append({ type: "space.message", message, routing });
    noteOrigin(services, row);
    const { seq } = row;
    toolCalls.store({ ...message, seq }, seq, space.confidentialFrom);
    const due = toolCalls.at(seq)?.expiresAt ?? undefined;
    if (due !== undefined) timers.setNoLater(callsTimer, due);
    return { ...message, seq };
  });
};

/** `updatedSeq`: the place in the log of the event that tells it. */
export type AnsweredCall = { message: CallMessage; created: boolean; updatedSeq: number };

/** A person answers a call that waits. Who may, and what counts, is decided here alone. */
export const answerToolCall = (
  services: SpaceServices,
  principal: Principal,
  toolCallId: string,
  answer: ToolAnswer,
  impersonated: ImpersonatedApprovals = "refused",
): AnsweredCall => {
  const { space, member } = acting(services, principal);
  const bytes = textBytes(JSON.stringify(answer));
  if (bytes > maxAnswerBytes) {
    const detail = `An answer has at most ${maxAnswerBytes} bytes of JSON (maxAnswerBytes); this one has ${bytes}`;
    throw new ColloquyError("payload_too_large", detail);
  }
  const found = rowOf(services, space, toolCallId);
  if (!found && deletedOf(services, services.ids.deriveOwned("msg", space.id, toolCallId))) {
    throw new ColloquyError("gone", "The tool call's message was deleted");
  }
  if (!found) throw new ColloquyError("not_found", `There is no tool call ${toolCallId} in this space`);
  if (member.type !== "human") throw new ColloquyError("forbidden", "Only people answer tool calls");
  const { approvers = [member.entityId], kind } = found.message.toolCall.awaits ?? {};
  if (!approvers.includes(member.entityId)) {
    throw new ColloquyError("forbidden", "This tool call asks others: you are not one of its approvers");
  }
  const impersonatedBy = principal.kind === "entity" ? principal.impersonatedBy : undefined;
  if (kind === "approval" && impersonatedBy !== undefined && impersonated === "refused") {
    throw new ColloquyError(
      "forbidden",
      "Somebody else made this session for you: it may talk, not approve. Sign in yourself; or the workspace allows it by its setting impersonatedApprovals, for answers by HTTP",
    );
  }
  if (found.isOpen && !services.members.find(found.agentId)) {
    throw new ColloquyError("gone", "The agent has left the space: nobody waits for an answer");
  }
  const isDeaf = found.expiresAt !== null && found.seq <= (space.confidentialFrom ?? 0);
  if (isDeaf) throw new ColloquyError("gone", withdrawn.message);
  const now = services.clock.now();
  // Its time may be up just now, before its timer came to it.
  const hasExpired = found.expiresAt !== null && found.expiresAt <= now;
  if (hasExpired) services.record((append) => end(services, append, [found], { status: "expired" }));
  const row = services.toolCalls.at(found.seq) ?? found;
  const { entityId, name } = member;
  const who = { entityId, name, at: isoTime(now), ...(impersonatedBy !== undefined && { impersonatedBy }) };
  const isCounted: Given["isCounted"] = (given) =>
    services.members.find(given.entityId) !== undefined &&
    (given.impersonatedBy === undefined || impersonated === "allowed");
  const verdict = judge(row.message.toolCall, { ...who, answer, isCounted });
  if (!verdict) return { message: row.message, created: false, updatedSeq: row.updatedSeq };
  const { answers, inputHash } = verdict.call.awaits ?? {};
  const message = services.record((append) => {
    if (kind === "approval") {
      const approved = answers?.at(-1)?.approved === true;
      // Its hash would prove guesses of a confidential call's words (C19).
      const shown = space.confidentialFrom === null && inputHash !== undefined ? { inputHash } : {};
      const detail = { spaceId: space.id, approved, ...shown };
      services.audit.note("approval.answered", principal, toolCallId, detail);
    }
    return change(services, append, row, verdict.call, verdict.outcome);
  });
  return { message, created: true, updatedSeq: services.log.head().seq };
};

/** Ends calls without anybody's word. The agents of those that expire are told. */
const end = (services: SpaceServices, append: Append, rows: CallRow[], how: Partial<ToolCall>): void => {
  const outcome = how.status === "expired" ? how.status : null;
  for (const row of rows) change(services, append, row, { ...row.message.toolCall, ...how }, outcome);
};

const cancel = (services: SpaceServices, append: Append, rows: CallRow[], error?: ToolCall["error"]): void => {
  end(services, append, rows, { status: "canceled", ...(error && { error }) });
  if (rows.length === maxExpiredAtOnce) services.timers.setNoLater(callsTimer, services.clock.now());
};

/** An agent leaves: nobody waits for its calls. Belongs in the transaction of its leaving, before it. */
export const cancelCallsOf = (services: SpaceServices, append: Append, agentId: string): void =>
  cancel(services, append, services.toolCalls.openOf(agentId, maxExpiredAtOnce));

const withdrawn = {
  code: "forbidden",
  message: "This space became confidential, and who asked does not hear it any more: let the agent ask here again",
};

/**
 * The space becomes confidential. Its open calls are of open minds, which hear no answers from then on (C17) and
 * are told so by the switch. Belongs in its transaction, before it: this is not confidential yet.
 */
export const withdrawCalls = (services: SpaceServices, append: Append): void =>
  cancel(services, append, services.toolCalls.asked(services.log.head().seq, maxExpiredAtOnce), withdrawn);

/** The timer `calls` went off. */
export const onCallsTimer = (services: SpaceServices): void => {
  const { settings, toolCalls, timers, clock } = services;
  const space = settings.find();
  if (space?.deletedSeq !== null) return;
  const unheard = toolCalls.asked(space.confidentialFrom ?? 0, maxExpiredAtOnce);
  if (unheard.length > 0) services.record((append) => cancel(services, append, unheard, withdrawn));
  const due = toolCalls.due(clock.now(), maxExpiredAtOnce);
  if (due.length > 0) services.record((append) => end(services, append, due, { status: "expired" }));
  const orphans = toolCalls.orphans(maxExpiredAtOnce);
  if (orphans.length > 0) services.record((append) => cancel(services, append, orphans));
  const isMore = [unheard, due, orphans].some(({ length }) => length === maxExpiredAtOnce);
  const next = isMore ? clock.now() : toolCalls.nextDue();
  if (next !== undefined) timers.set(callsTimer, next);
};
