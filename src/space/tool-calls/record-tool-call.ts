import type { AgentToolCall } from "../../protocol/rpc.ts";
import { isoTime } from "../../shared/clock.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { requireAwaited } from "../../shared/require-awaited.ts";
import { maxOpenToolCalls } from "../bounds.ts";
import { type Parts, record } from "../parts.ts";
import { spaceIn } from "../rights.ts";
import { checkRoom } from "../room.ts";
import type { SettingsRow } from "../settings.ts";
import type { CallMessage } from "./call-message.ts";
import { changeCall } from "./change.ts";
import { callsTimer } from "./expiry.ts";
import { advanced, begun } from "./standing.ts";

/**
 * An agent shows a tool call, or says how one that shows stands now: each once, however often it is said (R2). Its
 * message is the end of the stream that its input was written in (D4), wakes nobody, and is answered as it is then.
 * What was canceled before it showed is `gone`.
 */
export const recordToolCall = (parts: Parts, said: AgentToolCall): CallMessage => {
  const { agentId, toolCallId, messageId, streamId } = said;
  const space = spaceIn(parts, said.workspaceId);
  const isOwn = parts.ids.isIssued("tc", toolCallId) && parts.ids.ownerOf("tc", toolCallId) === agentId;
  if (!isOwn || messageId !== messageOfCall(parts, space, toolCallId)) {
    throw new ColloquyError(
      "invalid_request",
      `${toolCallId} is no tool call of ${agentId} whose message is ${messageId}`,
    );
  }
  const stored = parts.log.findMessage(messageId);
  const row = stored && parts.toolCalls.at(stored.seq);
  if (!row) return show(parts, space, said);
  if (streamId !== undefined) parts.live.repeated(streamId, agentId);
  const next = advanced(row.message.toolCall, said);
  if (next === row.message.toolCall) return row.message;
  return record(parts, (append) => changeCall(parts, append, row, next, null));
};

/** The id of the message that shows a call. */
export const messageOfCall = ({ ids }: Pick<Parts, "ids">, space: SettingsRow, toolCallId: string): string =>
  ids.deriveOwned("msg", space.id, toolCallId);

const show = (parts: Parts, space: SettingsRow, said: AgentToolCall): CallMessage => {
  const { agentId, messageId: id, root, origin } = said;
  const streamId = parts.live.endedBy(said.streamId);
  if (said.status === "canceled") throw new ColloquyError("gone", `${said.toolCallId} was canceled before it showed`);
  requireAwaited(parts, said);
  const sender = parts.members.find(agentId);
  if (!sender) throw new ColloquyError("not_a_member", `${agentId} is not in this space any more`);
  const toolCall = begun(said);
  checkRoom(parts);
  if (parts.toolCalls.countOpen(maxOpenToolCalls) === maxOpenToolCalls) {
    throw new ColloquyError(
      "limit_reached",
      `${maxOpenToolCalls} tool calls run or wait in this space (maxOpenToolCalls): let some of them end first`,
    );
  }
  const message = {
    id,
    spaceId: space.id,
    kind: "tool_call" as const,
    sender: { id: sender.entityId, name: sender.name, type: sender.type },
    toolCall,
    ...(origin === undefined ? {} : { origin }),
    ...(streamId === undefined ? {} : { streamId }),
    createdAt: isoTime(parts.clock.now()),
  };
  const routing = { root, wakePolicy: space.wakePolicy, mentions: [], pair: false, quiet: true as const };
  if (streamId !== undefined) parts.live.flush(streamId, agentId);
  const shown = record(parts, (append) => {
    const { seq } = append({ type: "space.message", message, routing });
    parts.toolCalls.store({ ...message, seq }, seq);
    const due = parts.toolCalls.at(seq)?.expiresAt ?? undefined;
    if (due !== undefined) parts.timers.setNoLater(callsTimer, due);
    return { ...message, seq };
  });
  if (streamId !== undefined) parts.live.said(streamId, agentId);
  return shown;
};
