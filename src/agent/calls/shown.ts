import type { AgentToolCall } from "../../protocol/rpc.ts";
import type { AwaitedAnswer } from "../../protocol/tool-call.ts";
import type { CallRow } from "./call-row.ts";
import type { CallServices } from "./call-services.ts";
import { statusOf } from "./due.ts";

const minute = 60_000;

/** Whom a call asks, and until when; undefined for one that asks nobody. */
const awaitsOf = ({ tool, createdAt }: CallRow): Omit<AwaitedAnswer, "answers"> | undefined => {
  const until = (minutes: number): string => new Date(createdAt + minutes * minute).toISOString();
  if (tool.executionType === "space") {
    const { by, schema, expiresInMinutes } = tool.answer;
    return {
      kind: "answer",
      quorum: 1,
      expiresAt: until(expiresInMinutes),
      ...(by === undefined ? {} : { approvers: by }),
      ...(schema === undefined ? {} : { schema }),
    };
  }
  const { approval } = tool;
  if (!approval?.required) return undefined;
  const { approvers, quorum, expiresInMinutes } = approval;
  return {
    kind: "approval",
    quorum,
    expiresAt: until(expiresInMinutes),
    ...(approvers === undefined ? {} : { approvers }),
  };
};

/** The call as its space is to show it now. */
export const shownCall = (
  services: Pick<CallServices, "identity" | "ids">,
  row: CallRow,
  spaceId: string,
): AgentToolCall => {
  const { id: agentId, workspaceId } = services.identity.get();
  const { outcome } = row;
  return {
    workspaceId,
    agentId,
    runId: services.ids.deriveOwned("run", agentId, row.runOrdinal),
    messageId: services.ids.deriveOwned("msg", spaceId, row.callId),
    toolCallId: row.callId,
    name: row.tool.name,
    input: row.input,
    status: statusOf(row),
    ...(outcome?.status === "complete" ? { output: outcome.value } : {}),
    ...(outcome?.error === undefined ? {} : { error: outcome.error }),
    awaits: awaitsOf(row),
    root: row.root,
    streamId: row.streamId ?? undefined,
    origin: row.origin ?? undefined,
  };
};
