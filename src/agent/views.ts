import type { Agent } from "../protocol/agent.ts";
import type { InboxItem } from "../protocol/run.ts";
import { isoTime } from "../shared/clock.ts";
import type { AgentRow } from "./identity.ts";
import type { InboxRow } from "./inbox.ts";
import type { LoopState } from "./loop.ts";
import type { Parts } from "./think/parts.ts";

/** What people who hold the workspace's key see of an agent. */
export const agentView = (row: AgentRow, parts: Parts, loop: LoopState): Agent => ({
  id: row.id,
  config: row.config,
  createdAt: isoTime(row.createdAt),
  updatedAt: isoTime(row.updatedAt),
  activity: {
    state: loop.state,
    since: isoTime(loop.state === "running" ? loop.since : (parts.runs.newest()?.completedAt ?? row.createdAt)),
    ...("runId" in loop ? { runId: loop.runId } : {}),
    ...("nextDueAt" in loop ? { nextDueAt: isoTime(loop.nextDueAt) } : {}),
    ...(row.lastError === null
      ? {}
      : { lastError: { code: row.lastError.code, message: row.lastError.message, at: isoTime(row.lastError.at) } }),
    tokensToday: parts.ledger.spent(),
  },
  ...(row.config.mcp.servers.length === 0 ? {} : { mcp: parts.mcp.status() }),
});

const inboxData = ({ data }: InboxRow): unknown => {
  if (data.type === "space_message") return { spaceName: data.spaceName, ...data.delivered };
  const { type: _, ...shown } = data;
  return shown;
};

export const inboxView = (row: InboxRow): InboxItem => ({
  eventId: row.eventId,
  type: row.type,
  data: inboxData(row),
  wakes: row.wakes,
  attempts: row.attempts,
  status: row.status,
  ...(row.lastError === null ? {} : { lastError: row.lastError }),
  receivedAt: isoTime(row.receivedAt),
});
