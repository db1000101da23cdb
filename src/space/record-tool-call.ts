import type { AgentToolCall } from "../protocol/rpc.ts";
import { isoTime } from "../shared/clock.ts";
import { ColloquyError } from "../shared/errors.ts";
import { requireAwaited } from "../shared/require-awaited.ts";
import { maxOpenToolCalls } from "./bounds.ts";
import { spaceIn } from "./rights.ts";
import { record, requireStorage, type SpaceServices } from "./services.ts";
import type { SettingsRow } from "./settings.ts";
import { callsTimer } from "./tool-call-expiry.ts";
import { advanced, begun } from "./tool-calls/call-state.ts";
import { changeCall } from "./tool-calls/tool-calls.ts";
import type { CallMessage } from "./types.ts";

/**
 * An agent shows a tool call, or says how one that shows stands now: each once, however often it is said (R2). Its
 * message is the end of the stream that its input was written in (D4), wakes nobody, and is answered as it is then.
 * A call that was canceled before it showed is `gone`.
 */
export const recordToolCall = (services: SpaceServices, said: AgentToolCall): CallMessage => {
  const { agentId, toolCallId, messageId, streamId } = said;
  const space = spaceIn(services, said.workspaceId);
  const isOwn = services.ids.isIssued("tc", toolCallId) && services.ids.ownerOf("tc", toolCallId) === agentId;
  if (!isOwn || messageId !== messageOfCall(services, space, toolCallId)) {
    throw new ColloquyError(
      "invalid_request",
      `${toolCallId} is no tool call of ${agentId} whose message is ${messageId}`,
    );
  }
  const stored = services.log.findMessage(messageId);
  const row = stored && services.toolCalls.at(stored.seq);
  if (!row) return show(services, space, said);
  if (streamId !== undefined) services.live.repeated(streamId, agentId);
  const next = advanced(row.message.toolCall, said);
  if (next === row.message.toolCall) return row.message;
  return record(services, (append) => changeCall(services, append, row, next, null));
};

/** The id of the message that shows a call. */
export const messageOfCall = ({ ids }: Pick<SpaceServices, "ids">, space: SettingsRow, toolCallId: string): string =>
  ids.deriveOwned("msg", space.id, toolCallId);

const show = (services: SpaceServices, space: SettingsRow, said: AgentToolCall): CallMessage => {
  const { agentId, messageId: id, root, origin } = said;
  const streamId = services.live.endedBy(said.streamId);
  if (said.status === "canceled") throw new ColloquyError("gone", `${said.toolCallId} was canceled before it showed`);
  requireAwaited(services, said);
  const sender = services.members.find(agentId);
  if (!sender) throw new ColloquyError("not_a_member", `${agentId} is not in this space any more`);
  const toolCall = begun(said);
  requireStorage(services);
  if (services.toolCalls.countOpen(maxOpenToolCalls) === maxOpenToolCalls) {
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
    createdAt: isoTime(services.clock.now()),
  };
  const routing = { root, wakePolicy: space.wakePolicy, mentions: [], pair: false, quiet: true as const };
  if (streamId !== undefined) services.live.flush(streamId, agentId);
  const shown = record(services, (append) => {
    const { seq } = append({ type: "space.message", message, routing });
    services.toolCalls.store({ ...message, seq }, seq);
    const due = services.toolCalls.at(seq)?.expiresAt ?? undefined;
    if (due !== undefined) services.timers.setNoLater(callsTimer, due);
    return { ...message, seq };
  });
  if (streamId !== undefined) services.live.said(streamId, agentId);
  return shown;
};
