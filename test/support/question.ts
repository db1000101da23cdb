import { env } from "cloudflare:workers";
import { unwrap } from "../../src/shared/errors.ts";
import { ids } from "./house.ts";

/** A tool call of the agent that waits for a person's answer in the space: its id. */
export const question = async (workspaceId: string, spaceId: string, agentId: string): Promise<string> => {
  const toolCallId = ids.mintOwned("tc", agentId);
  const messageId = ids.deriveOwned("msg", spaceId, toolCallId);
  unwrap(
    await env.SPACE.getByName(spaceId).recordToolCall({
      workspaceId,
      agentId,
      runId: ids.mintOwned("run", agentId),
      messageId,
      toolCallId,
      name: "choose",
      input: { of: ["red", "blue"] },
      status: "requires_action",
      awaits: { kind: "answer", quorum: 1, expiresAt: new Date(Date.now() + 3_600_000).toISOString() },
      root: { id: messageId, kind: "agent" },
    }),
  );
  return toolCallId;
};
