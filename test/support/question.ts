import { env } from "cloudflare:workers";
import { unwrap } from "../../src/shared/errors.ts";
import { ids } from "./house.ts";

/** The id of a tool call of the agent or its compartment that waits for a person's answer or leave. */
export const question = async (
  workspaceId: string,
  spaceId: string,
  agentId: string,
  kind: "answer" | "approval" = "answer",
  mindId?: string,
  quorum = 1,
): Promise<string> => {
  const toolCallId = ids.mintOwned("tc", mindId ?? agentId);
  const messageId = ids.deriveOwned("msg", spaceId, toolCallId);
  unwrap(
    await env.SPACE.getByName(spaceId).recordToolCall({
      workspaceId,
      agentId,
      mindId,
      runId: ids.mintOwned("run", mindId ?? agentId),
      messageId,
      toolCallId,
      name: "choose",
      input: { of: ["red", "blue"] },
      status: "requires_action",
      awaits: { kind, quorum, expiresAt: new Date(Date.now() + 3_600_000).toISOString() },
      root: { id: messageId, kind: "agent" },
    }),
  );
  return toolCallId;
};
