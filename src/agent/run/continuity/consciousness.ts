import type { RunTrigger } from "../../../protocol/run.ts";
import { log } from "../../../shared/log.ts";
import { excerpt } from "../../context/quote.ts";
import { type InboxRow, isRetry } from "../../inbox/inbox.ts";
import { loggedRun, ordinalAfter, type RunRow } from "../../runs.ts";
import { toolsetOf } from "../../tools/toolset.ts";
import { plainHeadOf } from "../head.ts";
import { nextBatch, prepare } from "./prepare-cycle.ts";
import type { RunServices } from "../run-services.ts";

const triggerTextCharacters = 200;

/** What a run that takes this batch is begun by: its newest event that wakes. */
export const triggerOf = (batch: InboxRow[]): RunTrigger => {
  const newest = batch.findLast((row) => row.wakes) ?? batch.at(-1);
  if (!newest) throw new Error("a run begins with at least one event");
  const common = { type: newest.type, eventId: newest.eventId, eventCount: batch.length };
  if (newest.data.type === "plan") {
    const { planName, instruction } = newest.data;
    return { ...common, senderName: planName, text: excerpt(instruction, triggerTextCharacters) };
  }
  if (newest.data.type === "service") return { ...common, senderName: newest.data.serviceName };
  if (newest.data.type === "tool_result") return { ...common, senderName: newest.data.tool };
  const { message } = newest.data.delivered;
  return {
    ...common,
    spaceId: message.spaceId,
    senderName: message.sender.name,
    text: excerpt(message.text ?? "", triggerTextCharacters),
  };
};

/** Whether anything that waits may still wake this agent: B1 for fresh events; a retry and an answer always may. */
const somethingWakes = (services: RunServices): boolean => {
  const waiting = services.inbox.wakingRoots();
  const wakes = services.roots.wakes(waiting.map(({ rootId }) => rootId));
  const { maxWakesPerRoot } = services.identity.get().config.limits;
  return waiting.some(({ rootId, unbounded }) => unbounded || (wakes.get(rootId) ?? 0) < maxWakesPerRoot);
};

/** Where a message came from, or where a call was made whose result has come. */
const spaceOf = ({ data }: InboxRow): string[] => {
  if (data.type === "space_message") return [data.delivered.message.spaceId];
  return data.type === "tool_result" && data.activeSpaceId !== null ? [data.activeSpaceId] : [];
};

const eventSpaces = (batch: InboxRow[]): string[] => [...new Set(batch.flatMap(spaceOf))];

/** Begins a run of the agent's kind, if something waits that may wake it. `newest` is its newest run so far. */
export const begin = (services: RunServices, newest: RunRow | undefined): RunRow | undefined => {
  const { continuity } = services.identity.get().config;
  const run = continuity === "timeline" ? beginTimelineRun(services, newest) : beginCycle(services, newest);
  if (run) log.info("run.begun", { ...loggedRun(services, run), events: run.events.length });
  return run;
};

/** The event that a timeline's next run would answer: the first that may wake this agent. */
export const nextEvent = (services: RunServices): InboxRow | undefined =>
  services.inbox.nextWaking(services.identity.get().config.limits.maxWakesPerRoot);

/** One event, one run. Its input is gathered by the run itself. */
const beginTimelineRun = (services: RunServices, newest: RunRow | undefined): RunRow | undefined => {
  const agent = services.identity.get();
  const row = nextEvent(services);
  if (!row) return undefined;
  return services.transaction(() => {
    const ordinal = ordinalAfter(newest);
    const window = services.consciousness.save(
      services.consciousness.windowFor(
        plainHeadOf(services),
        toolsetOf(agent.config, services.mcp.newestList()),
        ordinal,
        "timeline",
      ),
    );
    const spaceIds = eventSpaces([row]);
    const [home] = spaceIds;
    const { maxWakesPerRoot } = agent.config.limits;
    // No other run would acknowledge them; the history shows them.
    const quiet = home === undefined ? [] : services.inbox.quietIn(home, maxWakesPerRoot);
    const events = [row, ...quiet].map(({ seq }) => seq);
    services.inbox.take(events, maxWakesPerRoot);
    if (!isRetry(row)) services.roots.count([row.rootId]);
    return services.runs.begin(
      {
        id: services.ids.deriveOwned("run", agent.id, ordinal),
        continuity: "timeline",
        trigger: triggerOf([row]),
        events,
        roots: [row.rootId],
        spaceIds,
        windowId: window.id,
        journalFrom: services.journal.nextSeq(),
        told: {},
        activeSpaceId: home !== undefined && services.spaces.isMember(home) ? home : null,
        startedAt: services.clock.now(),
      },
      newest,
    );
  });
};

/**
 * Begins a cycle, if something waits that may wake this agent: the run, its inbox message in the journal, its events
 * taken and its roots counted, in one transaction.
 */
const beginCycle = (services: RunServices, newest: RunRow | undefined): RunRow | undefined => {
  if (!somethingWakes(services)) return undefined;
  const { rows: batch, passed } = nextBatch(services);
  if (batch.length === 0) return undefined;
  return services.transaction(() => {
    services.spaces.leaveAllToHistory(services.inbox.leave(passed));
    const prepared = prepare(services, batch, ordinalAfter(newest));
    const window = services.consciousness.save(prepared.window);
    const agent = services.identity.get();
    const fresh = batch.filter((row) => !isRetry(row));
    services.inbox.take(
      batch.map((row) => row.seq),
      agent.config.limits.maxWakesPerRoot,
    );
    services.roots.count([...new Set(fresh.map((row) => row.rootId))]);
    const inboxRow = services.journal.append({
      runOrdinal: prepared.ordinal,
      step: 0,
      kind: "inbox",
      content: { role: "user", content: prepared.text },
      meta: {
        kind: "inbox",
        lines: prepared.lines,
        ...(prepared.withheld.length === 0 ? {} : { dropped: prepared.withheld }),
        ...(prepared.history.length === 0 ? {} : { history: prepared.history }),
      },
    });
    return services.runs.begin(
      {
        id: services.ids.deriveOwned("run", agent.id, prepared.ordinal),
        trigger: triggerOf(batch),
        events: batch.map((row) => row.seq),
        roots: [...new Set(batch.map((row) => row.rootId))],
        continuity: "consciousness",
        spaceIds: eventSpaces(batch),
        windowId: window.id,
        journalFrom: inboxRow.seq,
        told: prepared.told,
        activeSpaceId: prepared.activeSpaceId,
        startedAt: services.clock.now(),
      },
      newest,
    );
  });
};
