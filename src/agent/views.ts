import type { ModelMessage } from "ai";
import type { Agent, AgentConfig } from "../protocol/agent.ts";
import type { ContextView, InboxItem, Run, RunStep } from "../protocol/run.ts";
import { isoTime } from "../shared/clock.ts";
import { compose } from "./context/compose.ts";
import type { Snapshot } from "./context/snapshot.ts";
import type { AgentRow } from "./identity.ts";
import type { InboxRow } from "./inbox.ts";
import type { JournalRow } from "./journal.ts";
import type { LoopState } from "./loop.ts";
import type { InboxData } from "./records.ts";
import type { RunRow } from "./runs.ts";
import type { Parts } from "./think/parts.ts";
import { prepare } from "./think/prepare.ts";
import { gatherTimeline } from "./think/timeline.ts";

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
});

const stepOf = (parts: Parts, run: RunRow, rows: JournalRow[], row: JournalRow, withInput: boolean): RunStep[] => {
  const { meta } = row;
  if (meta?.kind !== "assistant") return [];
  const input = withInput ? parts.consciousness.inputOf(run, rows, row.seq) : null;
  return [
    {
      index: row.step,
      ...(input === null ? {} : { input }),
      text: meta.text,
      toolCalls: meta.calls.map((call) => callView(call, rows)),
      usage: meta.usage,
      durationMs: meta.durationMs,
    },
  ];
};

const callView = (
  call: { callId: string; toolName: string; input: unknown },
  rows: JournalRow[],
): RunStep["toolCalls"][number] => {
  const common = { id: call.callId, name: call.toolName, input: call.input };
  const result = rows.find((row) => row.meta?.kind === "result" && row.meta.callId === call.callId);
  if (result?.meta?.kind === "result" && "role" in result.content && result.content.role === "tool") {
    const [part] = result.content.content;
    const output = part?.type === "tool-result" && "value" in part.output ? part.output.value : undefined;
    return { ...common, output, status: result.meta.error ? "error" : "complete" };
  }
  const started = rows.some((row) => "callId" in row.content && row.content.callId === call.callId);
  return { ...common, status: started ? "started" : "pending" };
};

export const runView = (parts: Parts, run: RunRow, withInput: boolean): Run => {
  const rows = parts.journal.ofRun(run.ordinal, run.journalFrom, run.journalTo ?? undefined);
  const [spaceId] = run.spaceIds;
  return {
    id: run.id,
    agentId: parts.identity.get().id,
    status: run.status,
    trigger: run.trigger,
    roots: run.roots,
    ...(spaceId === undefined ? {} : { spaceId: run.trigger.spaceId ?? spaceId }),
    steps: rows.flatMap((row) => stepOf(parts, run, rows, row, withInput)),
    ...(run.outcome === null ? {} : { outcome: run.outcome }),
    ...(run.reason === null ? {} : { reason: run.reason }),
    ...(run.error === null ? {} : { error: run.error }),
    ...(run.prefixReuse === null ? {} : { prefixReuse: run.prefixReuse }),
    startedAt: isoTime(run.startedAt),
    ...(run.completedAt === null ? {} : { completedAt: isoTime(run.completedAt) }),
  };
};

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

/** What the next run's input would be, whether or not anything wakes it now. */
export const contextView = async (parts: Parts): Promise<ContextView> => {
  const { config } = parts.identity.get();
  const snapshot = config.continuity === "timeline" ? await nextTimeline(parts) : nextCycle(parts, config);
  const { firstCycle: _, ...view } = compose(snapshot, parts.identity.get().correction);
  return view;
};

const viewTimeoutMs = 10_000;

/** Shown where nothing waits: a run needs something to begin with. */
const nothingWaits: InboxData = {
  type: "service",
  serviceName: "(nothing waits)",
  payload: null,
  root: { id: "", kind: "service" },
};

const nextTimeline = (parts: Parts): Promise<Snapshot> => {
  const event = parts.inbox.nextWaking(() => true)?.data ?? nothingWaits;
  return gatherTimeline(parts, event, parts.runs.nextOrdinal(), AbortSignal.timeout(viewTimeoutMs));
};

const nextCycle = (parts: Parts, config: AgentConfig): Snapshot => {
  const prepared = prepare(parts, parts.inbox.nextBatch());
  const past = parts.consciousness.past(prepared.window.firstRun, prepared.ordinal);
  const own: ModelMessage[] = [{ role: "user", content: prepared.text }];
  return { continuity: "consciousness", config, window: prepared.window, past, own };
};
