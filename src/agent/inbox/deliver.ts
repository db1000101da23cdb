import type { TriggerAgent } from "../../protocol/agent.ts";
import type { Delivery, Root } from "../../protocol/rpc.ts";
import { textBytes } from "../../protocol/text.ts";
import { isoTime } from "../../shared/clock.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { maxInboxEvents, maxPayloadBytes } from "../bounds.ts";
import type { CallRow } from "../calls/call-row.ts";
import type { PlanRow } from "../plans/plans.ts";
import type { InboxData } from "../records.ts";
import type { Parts } from "../run/parts.ts";
import { isLateAnswer } from "../tools/handling.ts";
import type { NewEvent } from "./inbox.ts";
import { ownRoot } from "./roots.ts";

/**
 * What reaches the inbox.
 *
 * Invariants
 * 1. What is at or before the cursor of its space is ignored, and event ids are unique: a delivery that comes
 *    twice changes nothing (R7, D2).
 * 2. The inbox, the cursor and what is known of the space change in one transaction, with the deadman armed where
 *    anything in it asks for a run.
 */
/** Whether the inbox takes so many more. What waits and asks for no run makes way. In a transaction. */
const hasRoom = (parts: Parts, adding: number): boolean => {
  if (!parts.inbox.isFull(adding)) return true;
  parts.inbox.forget();
  dropQuiet(parts);
  return !parts.inbox.isFull(adding);
};

/** Throws `unavailable` while the inbox takes no more: what brings it comes again. In a transaction. */
export const requireRoom = (parts: Parts, adding: number): void => {
  if (hasRoom(parts, adding)) return;
  const reached = `maxInboxEvents (${maxInboxEvents}) is reached: the agent has not come to what waits.`;
  throw new ColloquyError("unavailable", `${reached} Try again later; its activity says what it does.`);
};

const dropQuiet = (parts: Parts): void => {
  const { id, config } = parts.identity.get();
  parts.spaces.leaveAllToHistory(parts.inbox.dropQuiet(config.limits.maxWakesPerRoot, id));
};

/** Whether it brings messages of which none wakes this agent: unless somebody awaited them, its loop sleeps on. */
const isHeardOnly = ({ messages }: Delivery): boolean =>
  messages.length > 0 && messages.every(({ triggerSource }) => triggerSource === "none");

/** Takes in what a space has for this agent. Answers up to where it has come, and whether its loop is to look at it. */
export const accept = (
  parts: Parts,
  delivery: Delivery,
  armLoop: () => void,
): { cursor: number; asksForRun: boolean } => {
  const agent = parts.identity.get();
  if (delivery.space.workspaceId !== agent.workspaceId) throw new ColloquyError("not_found", "there is no such agent");
  let asksForRun = !isHeardOnly(delivery);
  const arm = (): void => {
    asksForRun = true;
    armLoop();
  };
  const cursor = parts.transaction(() => {
    const known = parts.spaces.get(delivery.space.id);
    const from = known?.cursor ?? 0;
    if (known && delivery.cursor <= from && delivery.space.version <= known.version) return from;
    const fresh = delivery.messages.filter(({ message }) => message.seq > from);
    if (fresh.length > 0) requireRoom(parts, fresh.length);
    const awaited = parts.waits.awaits(delivery.space.id);
    let unheard = 0;
    const events: NewEvent[] = [];
    const given: { ordinal: number; eventId: string }[] = [];
    for (const delivered of fresh) {
      const waiting = awaited ? parts.waits.answer(delivered.message) : [];
      // What wakes no timeline run is acknowledged by the history, which holds it.
      if (waiting.length === 0 && delivered.triggerSource === "none" && agent.config.continuity === "timeline") {
        unheard += 1;
        continue;
      }
      const { message, triggerSource } = delivered;
      const eventId = parts.ids.deriveFrom("evt", agent.id, message.id);
      const data: InboxData = { type: "space_message", spaceName: delivery.space.name, delivered };
      events.push({ eventId, data, wakes: triggerSource !== "none" });
      if (triggerSource !== "none" || waiting.length > 0) arm();
      for (const ordinal of waiting) given.push({ ordinal, eventId });
    }
    parts.inbox.addAll(events);
    for (const { ordinal, eventId } of given) giveTo(parts, ordinal, eventId);
    const decided = (delivery.answers ?? [])
      .filter(({ seq }) => seq > from)
      .filter((each) => parts.calls.decided(each));
    const to = Math.max(from, delivery.cursor);
    parts.spaces.follow(delivery.space, to, delivery.left, unheard);
    if (known?.version !== delivery.space.version || known.left !== delivery.left) {
      const members = new Set(delivery.left ? [] : delivery.space.members.map(({ id }) => id));
      if (parts.waits.left(delivery.space.id, members)) arm();
    }
    if (delivery.left) {
      parts.calls.left(delivery.space.id);
      parts.blockSpaces.left(delivery.space.id);
    }
    if (delivery.left || decided.length > 0) arm();
    if (fresh.length > 0) dropQuiet(parts);
    return to;
  });
  parts.watchers.keep(delivery.space.id, delivery.left ? [] : delivery.space.members);
  return { cursor, asksForRun };
};

/** Takes in what came of a call that no run waited for. In a transaction; throws while the inbox is full. */
export const acceptToolResult = (parts: Parts, call: CallRow, arm: () => void): void => {
  requireRoom(parts, 1);
  const { callId: toolCallId, tool, outcome, activeSpaceId, root } = call;
  const eventId = parts.ids.deriveOwned("evt", parts.identity.get().id, "tool_result", toolCallId);
  const result = outcome?.value ?? null;
  const failed = outcome?.status !== "complete";
  const bounded = {
    ...(outcome?.status === "expired" ? { expired: true as const } : {}),
    ...(isLateAnswer(tool) ? { late: true as const } : {}),
  };
  parts.inbox.add(
    eventId,
    { type: "tool_result", toolCallId, tool: tool.name, result, failed, ...bounded, activeSpaceId, root },
    true,
  );
  arm();
};

/** An answer belongs to the run that waits for it: it begins no other, and is acknowledged with that one. */
const giveTo = (parts: Parts, ordinal: number, eventId: string): void => {
  const run = parts.runs.at(ordinal);
  const event = parts.inbox.byEventId(eventId);
  if (!run || run.completedAt !== null || event?.status !== "pending") return;
  parts.inbox.take([event.seq], parts.identity.get().config.limits.maxWakesPerRoot);
  parts.runs.update(ordinal, { events: [...run.events, event.seq] });
};

/** What was taken for an answer and is none is an event like any other again. */
const takeBack = (parts: Parts, ordinal: number, messageIds: string[]): void => {
  if (messageIds.length === 0) return;
  const { id: agentId } = parts.identity.get();
  const seqs = messageIds.flatMap(
    (messageId) => parts.inbox.byEventId(parts.ids.deriveFrom("evt", agentId, messageId))?.seq ?? [],
  );
  const events = parts.runs.at(ordinal)?.events ?? [];
  const back = seqs.filter((seq) => events.includes(seq));
  parts.inbox.release(back);
  parts.runs.update(ordinal, { events: events.filter((seq) => !back.includes(seq)) });
};

/** A run's message was not said. */
export const takeBackWait = (parts: Parts, ordinal: number, callId: string): void =>
  parts.transaction(() => takeBack(parts, ordinal, parts.waits.drop(callId)));

/** A run's message stands at `seq` of its space's log: what was said before it is no answer to it. */
export const placeWait = (parts: Parts, ordinal: number, callId: string, seq: number): void =>
  parts.transaction(() => takeBack(parts, ordinal, parts.waits.asked(callId, seq)));

/** Takes in a service's event. The same idempotency key again is the same event. */
export const acceptTrigger = (
  parts: Parts,
  event: TriggerAgent,
  idempotencyKey: string | undefined,
  arm: () => void,
): { eventId: string } => {
  const { id: agentId } = parts.identity.get();
  const bytes = textBytes(JSON.stringify(event.payload));
  if (bytes > maxPayloadBytes) {
    throw new ColloquyError("payload_too_large", `payload has ${bytes} bytes; maxPayloadBytes is ${maxPayloadBytes}`);
  }
  const eventId =
    idempotencyKey === undefined
      ? parts.ids.mintOwned("evt", agentId)
      : parts.ids.deriveOwned("evt", agentId, "trigger", idempotencyKey);
  return parts.transaction(() => {
    if (idempotencyKey !== undefined && !parts.seenEvents.firstSight(eventId)) return { eventId };
    requireRoom(parts, 1);
    parts.inbox.add(eventId, { type: "service", ...event, root: { id: eventId, kind: "service" } }, true);
    arm();
    return { eventId };
  });
};

/** Where the chain of what a plan causes begins (B1): with its setter, the run that set it, or the agent itself. */
const rootOfPlan = (parts: Parts, plan: PlanRow, eventId: string): Root => {
  if (plan.setBy === "workspace") return { id: eventId, kind: "plan" };
  if (plan.root) return plan.root;
  const last = parts.identity.get().ownRoot;
  const own = ownRoot(last, eventId, parts.clock.now());
  if (own !== last) parts.identity.update({ ownRoot: own });
  return { id: own.id, kind: "agent" };
};

/** Takes in a plan that is due. Its id follows from the plan and the due time. In a transaction. */
export const acceptPlan = (parts: Parts, plan: PlanRow, dueAt: number, arm: () => void): void => {
  requireRoom(parts, 1);
  const eventId = parts.ids.deriveOwned("evt", parts.identity.get().id, "plan", plan.id, dueAt);
  const { id: planId, name: planName, instruction } = plan;
  const root = rootOfPlan(parts, plan, eventId);
  parts.inbox.add(eventId, { type: "plan", planId, planName, instruction, scheduledAt: isoTime(dueAt), root }, true);
  arm();
};

const heartbeat = {
  planId: "heartbeat",
  planName: "heartbeat",
  instruction: "Look at your goals, plans and memories: do what is due. If nothing is, call skip.",
} as const;

/** Takes in a heartbeat, unless the one before still waits: an agent that cannot work is not told more often. */
export const acceptHeartbeat = (parts: Parts, dueAt: number, arm: () => void): void => {
  if (parts.inbox.holdsPlan(heartbeat.planId) || !hasRoom(parts, 1)) return;
  const eventId = parts.ids.deriveOwned("evt", parts.identity.get().id, "heartbeat", dueAt);
  const root: Root = { id: eventId, kind: "plan" };
  parts.inbox.add(eventId, { type: "plan", ...heartbeat, scheduledAt: isoTime(dueAt), root }, true);
  arm();
};
