import type { Agent } from "../../protocol/agent.ts";
import type { InboxItem } from "../../protocol/run.ts";
import { isoTime } from "../../shared/clock.ts";
import type { AgentRow } from "../identity.ts";
import type { InboxRow } from "../inbox/inbox.ts";
import { activityOf, type Observed } from "./activity.ts";

/** What people who hold the workspace's key see of an agent. */
export const agentView = (row: AgentRow, mind: Observed): Agent => ({
  id: row.id,
  config: row.config,
  createdAt: isoTime(row.createdAt),
  updatedAt: isoTime(row.updatedAt),
  activity: activityOf(row, mind),
  ...(row.config.mcp.servers.length === 0 ? {} : { mcp: mind.parts.mcp.status() }),
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
