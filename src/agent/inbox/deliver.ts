import { toldOutside } from "../../auth/root-header.ts";
import type { TriggerAgent } from "../../protocol/agent.ts";
import type { ProvenDelivery } from "../../protocol/agent-rpc.ts";
import { continuityFacts } from "../../protocol/continuity.ts";
import type { DeliveredMessage, Delivery, Root } from "../../protocol/rpc.ts";
import { textBytes } from "../../protocol/text.ts";
import { isoTime } from "../../shared/clock.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { maxInboxEvents, maxPayloadBytes, replyWaitMs, sameBodyMs } from "../bounds.ts";
import { becameConfidential } from "../context/grammar.ts";
import { excerpt } from "../context/wording.ts";
import type { PlanRow } from "../plans/plans.ts";
import type { Awaited, InboxData, Question } from "../records.ts";
import type { RunRow } from "../runs.ts";
import type { CallRow, InboxRow } from "../schema.ts";
import { isLateAnswer } from "../tools/call-mode.ts";
import type { DedupeKeys } from "./dedupe-keys.ts";
import type { Hooks } from "./hooks.ts";
import type { NewEvent } from "./inbox.ts";
import { type ChangingServices, changeMessages, leaveDeleted, messageEventId } from "./message-changes.ts";
import type { OutOfBudget } from "./out-of-budget.ts";
import { ownRoot, type Roots } from "./roots.ts";
import type { WaitRow } from "./waits.ts";

/**
 * The ways into the inbox.
 *
 * Invariants
 * 1. Messages at or before the cursor of their space are ignored, and event ids are unique. So a delivery that comes
 *    twice changes nothing (R7, D2).
 * 2. The inbox, the cursor and the space's snapshot change in one transaction.
 * 3. A redaction may be past the inbox, and not yet have come to the rows that an event is made of: it is cleaned (L4).
 */
export type InboxServices = ChangingServices & {
  dedupeKeys: DedupeKeys;
  hooks: Hooks;
  roots: Roots;
  outOfBudget: OutOfBudget;
};

/** Throws `unavailable` while the inbox is full: the sender tries again. */
const requireRoom = ({ inbox }: InboxServices, adding: number): void => {
  if (!inbox.isFull(adding)) return;
  const reached = `maxInboxEvents (${maxInboxEvents}) is reached: the agent has not come to what waits.`;
  throw new ColloquyError("unavailable", `${reached} Try again later; its activity says what it does.`);
};

/** The id of an event follows from what it is: what comes twice has the same. */
const eventIdOf = ({ ids, identity }: InboxServices, ...parts: (string | number)[]): string =>
  ids.deriveOwned("evt", identity.mindId(), ...parts);

/** Takes in one event that asks for a run. In a transaction; throws while the inbox is full. */
const enterOne = (services: InboxServices, eventId: string, data: InboxData): void => {
  requireRoom(services, 1);
  services.inbox.enter([{ eventId, data, wakes: true }]);
};

const isWaking = ({ triggerSource }: DeliveredMessage): boolean => triggerSource !== "none";

/** Whether the mind has all of it. An open mind's cursor stands still in a confidential space; what changes there does not. */
const isOld = ({ cursor, space, openUpTo }: Delivery, has: { version: number; from: number }): boolean =>
  openUpTo === undefined ? cursor <= has.from && space.version <= has.version : space.version < has.version;

/** Takes in a space's delivery. Answers the new cursor, and whether the loop is to wake. */
export const accept = (services: InboxServices, delivery: Delivery): { cursor: number; asksForRun: boolean } => {
  const { config } = services.identity.get();
  const { readsHistory } = continuityFacts(config);
  // Messages that wake nobody let the loop sleep on, unless a run awaits one.
  let asksForRun = delivery.messages.length === 0 || delivery.messages.some(isWaking);
  const arm = (): void => {
    asksForRun = true;
    services.armLoop();
  };
  const cursor = services.transaction(() => {
    const known = services.spaces.get(delivery.space.id);
    const from = known?.cursor ?? 0;
    if (known && isOld(delivery, { version: known.version, from })) return Math.max(from, delivery.cursor);
    const fresh = delivery.messages.filter(({ message }) => message.seq > from);
    if (fresh.length > 0) requireRoom(services, fresh.length);
    const isAwaited = services.waits.awaits(delivery.space.id);
    let unheard = 0;
    // It knows the space as it was.
    const { name: spaceName } = known && delivery.left ? known.snapshot : delivery.space;
    const events: NewEvent[] = [];
    const given: { ordinal: number; index: number }[] = [];
    for (const { root, ...heard } of fresh) {
      const delivered = { ...heard, root: toldOutside(services.identity.get(), services.ids, root, heard.message.id) };
      const waiting = isAwaited ? services.waits.answer(delivered, (wait) => questionOf(services, wait).messageId) : [];
      const ofCycles = waiting.filter(isOfCycle);
      // Words of its own that were let out it knows everywhere.
      const isRead = readsHistory && delivered.own !== "let_out";
      if (waiting.length === 0 && !isWaking(delivered) && isRead) {
        unheard += 1;
        continue;
      }
      const eventId = messageEventId(services, delivered.message.id);
      const answers = waiting.flatMap((wait) => (wait.questionSeq === null ? [] : questionOf(services, wait)));
      const answering = answers.length === 0 ? {} : { answers };
      const data: InboxData = { type: "space_message", spaceName, delivered, ...answering };
      // It belongs to the runs that wait for it: it begins no other, and is acknowledged with the last of them.
      const ofRuns = waiting.filter((wait) => !isOfCycle(wait)).map(({ runOrdinal }) => runOrdinal);
      const resting = new Set(ofRuns.filter((ordinal) => services.runs.at(ordinal)?.completedAt === null));
      if (waiting.length > 0) arm();
      for (const ordinal of resting) given.push({ ordinal, index: events.length });
      // An answer to a cycle wakes the agent together with the other answers.
      const isHeld = ofCycles.length > 0 && resting.size === 0;
      const wakes = isWaking(delivered) && !isHeld;
      events.push({ eventId, data, wakes, isTaken: resting.size > 0, isAwaited: isHeld });
    }
    const to = Math.max(from, delivery.cursor);
    // First, so that what the inbox evicts is counted for a space that is new.
    // What an open mind knows of a confidential space does not tell how much is said there (C17).
    const heardTo = Math.max(from, Math.min(to, delivery.openUpTo ?? to));
    services.spaces.follow(delivery.space, heardTo, delivery.left, unheard);
    if (delivery.space.deleted) leaveDeleted(services, delivery.space.id);
    services.search.noticed();
    const seqs = services.inbox.enter(events);
    for (const { ordinal, index } of given) {
      const taken = services.runs.at(ordinal)?.events ?? [];
      services.runs.update(ordinal, { events: [...taken, ...seqs.slice(index, index + 1)] });
    }
    changeMessages(services, delivery.changes?.filter(({ seq }) => seq > from) ?? []);
    const decided = (delivery.answers ?? []).filter((each) => each.seq > from && services.calls.decided(each, config));
    // The open mind has read all up to the switch to confidential. It gets no answer after it (C17).
    const isDeaf = delivery.openUpTo !== undefined && to >= delivery.openUpTo;
    const why = `${becameConfidential}: ask again there`;
    if (isDeaf && services.calls.canceledIn(delivery.space.id, "asked", "forbidden", why)) arm();
    const how = delivery.left ? "agent" : isDeaf ? "confidential" : true;
    const members = how === true ? delivery.space.members : [];
    if (isAwaited && services.waits.left(delivery.space.id, new Set(members.map(({ id }) => id)), how)) arm();
    if (delivery.left) {
      services.calls.left(delivery.space.id);
      services.shares.left(delivery.space.id);
    }
    if (delivery.left || decided.length > 0) arm();
    return to;
  });
  services.subscriptions.keepMembers(delivery.space.id, { ...delivery.space, ...(delivery.left && { members: [] }) });
  return { cursor, asksForRun };
};

/** The result of a call that no run waited for, as an event. */
export const toolResultOf = ({ callId: toolCallId, tool, outcome, activeSpaceId, root }: CallRow): InboxData => ({
  type: "tool_result",
  toolCallId,
  tool: tool.name,
  result: outcome?.value ?? null,
  failed: outcome?.status !== "complete",
  ...(outcome?.status === "expired" ? { expired: true } : {}),
  ...(isLateAnswer(tool) ? { late: true } : {}),
  activeSpaceId,
  root,
});

/** Takes in the result of such a call. In a transaction; throws while the inbox is full. */
export const acceptToolResult = (services: InboxServices, call: CallRow): void =>
  enterOne(services, eventIdOf(services, "tool_result", call.callId), services.redactions.clean(toolResultOf(call)));

const isOfCycle = ({ root }: WaitRow): boolean => root !== null;

const questionCharacters = 200;

/** The message that asked: its id follows from its call. */
export const questionOf = ({ ids, redactions }: InboxServices, wait: WaitRow): Question => ({
  messageId: ids.deriveOwned("msg", wait.spaceId, wait.callId),
  text: excerpt(redactions.clean(wait.text, wait.dueAt - replyWaitMs), questionCharacters),
});

/** The messages that were taken for answers and wait for a run. */
const heldOnes = (services: InboxServices, messageIds: string[]): InboxRow[] =>
  services.inbox.waiting(messageIds.map((id) => messageEventId(services, id)));

/** These messages are no longer awaited: they wake the agent if they would have done so anyway. */
const wakeAsDelivered = (services: InboxServices, messageIds: string[]): void =>
  services.inbox.wake(
    heldOnes(services, messageIds).filter(({ data }) => data.type === "space_message" && isWaking(data.delivered)),
  );

/**
 * The event that tells who has not answered a cycle's question. It wakes the agent only as often as its root may (B1). It
 * has no active space if the agent has left the space.
 */
const unansweredOf = (services: InboxServices, wait: WaitRow, root: Root): InboxData | undefined => {
  const { spaceId, callId, awaited } = wait;
  const silent = awaited.filter(({ replyId }) => replyId === null);
  const spaceName = services.spaces.get(spaceId)?.snapshot.name;
  if (silent.length === 0 || spaceName === undefined) return undefined;
  const isMember = services.spaces.isMember(spaceId);
  const namesOf = (who: Awaited[]): string[] => who.map(({ name }) => name);
  const hasLeft = ({ left }: Awaited): boolean => left !== undefined && left !== "confidential";
  const unanswered = {
    ...{ question: questionOf(services, wait), spaceName, afterMs: replyWaitMs },
    ...{ late: namesOf(silent.filter((who) => !hasLeft(who))), left: namesOf(silent.filter(hasLeft)) },
    ...(silent.some(({ left }) => left === "confidential") ? { confidential: true as const } : {}),
    ...(isMember ? {} : { formerSpaceId: spaceId }),
  };
  const facts = { toolCallId: callId, tool: "wait", result: unanswered, failed: true, expired: true } as const;
  return { type: "tool_result", ...facts, activeSpaceId: isMember ? spaceId : null, unanswered, root };
};

/**
 * Ends the waits of cycles that are over. The answers that came wake the agent together, and it is told who did not
 * answer.
 */
export const settleWaits = (services: InboxServices): void => {
  const { waitsForAnswers } = continuityFacts(services.identity.get().config);
  for (const wait of services.waits.over()) {
    const silence = wait.root && unansweredOf(services, wait, wait.root);
    // It is settled once there is room.
    if (silence && services.inbox.isFull(1)) continue;
    services.transaction(() => {
      services.inbox.wake(heldOnes(services, services.waits.drop(wait.callId)));
      const eventId = eventIdOf(services, "unanswered", wait.callId);
      // A cycle is told with what wakes it next that it is no longer where it asked.
      const wakes = services.spaces.isMember(wait.spaceId) || waitsForAnswers;
      if (silence) services.inbox.enter([{ eventId, data: silence, wakes, isAwaited: true }]);
    });
  }
};

/** Those of a run's events that no other run has which goes on: an answer may belong to several. */
export const unsharedOf = (
  { runs, calls }: InboxServices,
  { ordinal, events }: Pick<RunRow, "ordinal" | "events">,
): number[] => {
  // One that has its trigger alone shares nothing.
  if (events.length <= 1) return events;
  const others = [...runs.active(), ...runs.those(calls.waitingRuns())].filter((run) => run.ordinal !== ordinal);
  const shared = new Set(others.flatMap((run) => run.events));
  return events.filter((seq) => !shared.has(seq));
};

/** Takes messages from a run that answer no question of it any more. What no other run has is released. */
const takeBack = (services: InboxServices, ordinal: number, taken: string[]): void => {
  const messageIds = services.waits.free(taken, ordinal);
  if (messageIds.length === 0) return;
  const seqs = messageIds.map((id) => services.inbox.byEventId(messageEventId(services, id))?.seq);
  const run = { ordinal, events: services.runs.at(ordinal)?.events ?? [] };
  services.inbox.release(unsharedOf(services, run).filter((seq) => seqs.includes(seq)));
  services.armLoop();
  services.runs.update(ordinal, { events: run.events.filter((seq) => !seqs.includes(seq)) });
  wakeAsDelivered(services, services.waits.free(messageIds));
};

/**
 * A run ends. A cycle's questions stay open, unless they were not said or it is cut. Answers that the run has not read
 * are not its own any more; those of an absorbed run are the other's.
 */
export const closeWaits = (
  services: InboxServices,
  { ordinal }: { ordinal: number },
  { wasCut, isAbsorbed }: { wasCut: boolean; isAbsorbed: boolean },
): void => {
  for (const wait of services.waits.ofRun(ordinal)) {
    if (isOfCycle(wait) && wait.questionSeq !== null && !wasCut) continue;
    const taken = services.waits.drop(wait.callId);
    if (isAbsorbed) wakeAsDelivered(services, services.waits.free(taken));
    else takeBack(services, ordinal, taken);
  }
};

/** Drops the wait of a message that was not said. */
export const takeBackWait = (services: InboxServices, ordinal: number, callId: string): void =>
  services.transaction(() => takeBack(services, ordinal, services.waits.drop(callId)));

/** A run's question stands at `seq` of its space's log: earlier messages are no answers to it. */
export const placeWait = (services: InboxServices, ordinal: number, callId: string, seq: number): void =>
  services.transaction(() => {
    const asked = services.waits.asked(callId, seq);
    if (!asked) return;
    const { wait, answers, others } = asked;
    takeBack(services, ordinal, others);
    for (const id of answers) {
      const row = services.inbox.byEventId(messageEventId(services, id));
      if (row) services.inbox.answers(row, [questionOf(services, wait)]);
    }
  });

/** Throws `payload_too_large`; `hint` says more of it. */
const requireFitting = (what: string, payload: unknown, hint: string): void => {
  const bytes = textBytes(JSON.stringify(payload));
  if (bytes <= maxPayloadBytes) return;
  const detail = `${what} has ${bytes} bytes; maxPayloadBytes is ${maxPayloadBytes}${hint}`;
  throw new ColloquyError("payload_too_large", detail);
};

/**
 * Throws `rate_limited` where as many runs have begun in the last hour, or wait for services' events, as may. What goes on
 * in a root comes in though the hour is full, and is no exception to how many may wait. What is no service's comes in.
 */
const requireHour = ({ runs, inbox, identity, clock }: InboxServices, inherited: Root | undefined): void => {
  const { maxRunsPerHour } = identity.get().config.limits;
  const waiting = inbox.waitingOfServices();
  if (inherited && waiting < maxRunsPerHour) return;
  const until = runs.hourFullUntil(maxRunsPerHour, waiting);
  if (until === undefined) return;
  const reached = `maxRunsPerHour (${maxRunsPerHour}) is reached: so many runs of the agent began in an hour, or wait.`;
  const remedy = "Send it again later; pass Colloquy-Root on where a tool's request set it off.";
  throw new ColloquyError("rate_limited", `${reached} ${remedy}`, { retryAfterMs: until - clock.now() });
};

/** Takes in a service's event. Without an id it is a new one; with one it comes once. `inherited`: the root it goes on in. */
const acceptService = (
  services: InboxServices,
  event: TriggerAgent,
  id: string | undefined,
  inherited: Root | undefined,
): { eventId: string } => {
  const eventId = id ?? services.ids.mintOwned("evt", services.identity.mindId());
  services.transaction(() => {
    if (id !== undefined && !services.dedupeKeys.firstSight(id)) return;
    requireRoom(services, 1);
    requireHour(services, inherited);
    const data: InboxData = { type: "service", ...event, root: inherited ?? { id: eventId, kind: "service" } };
    // A waiting event counts as a wake of its root: a header that is sent again and again lets no more wait (B1).
    const wakes = inherited === undefined || services.inbox.mayWaitFor(inherited.id);
    services.inbox.enter([{ eventId, data, wakes }]);
  });
  return { eventId };
};

/**
 * The same idempotency key again is the same event. Throws `payload_too_large`, `rate_limited` beyond `maxRunsPerHour`, and
 * `unavailable` while the inbox is full.
 */
export const acceptTrigger = (
  services: InboxServices,
  event: TriggerAgent,
  key?: string,
  root?: Root,
): { eventId: string } => {
  requireFitting("payload", event.payload, "");
  return acceptService(services, event, key === undefined ? undefined : eventIdOf(services, "trigger", key), root);
};

/**
 * Takes in a webhook delivery. The same delivery again answers the same event (D5). Throws `not_found`,
 * `payload_too_large`, `rate_limited` beyond `maxRunsPerHour`, and `unavailable` while the inbox is full.
 */
export const acceptDelivery = (
  services: InboxServices,
  hookId: string,
  { name, payload, root }: ProvenDelivery,
): { eventId: string } => {
  const { name: serviceName } = services.hooks.get(hookId);
  requireFitting("The delivery", payload, ". A template of the hook picks what the agent reads of it.");
  return acceptService(services, { serviceName, payload }, idOfDelivery(services, hookId, name), root);
};

/**
 * The id of a delivery's event. A delivery without an id is named by its body: the same body within `sameBodyMs` is the
 * same delivery. Its event's id follows from the body and the stretch of `sameBodyMs` in which it came first, which is
 * this one or the last.
 */
const idOfDelivery = (services: InboxServices, hookId: string, name: ProvenDelivery["name"]): string => {
  if ("id" in name) return eventIdOf(services, "hook", hookId, "id", name.id);
  const idIn = (stretch: number) => eventIdOf(services, "hook", hookId, "body", name.bodyHash, stretch);
  const now = services.clock.now();
  const stretch = Math.floor(now / sameBodyMs);
  const last = idIn(stretch - 1);
  const isRecent = (services.dedupeKeys.seenAt(last) ?? Number.NEGATIVE_INFINITY) > now - sameBodyMs;
  return isRecent ? last : idIn(stretch);
};

/**
 * The root of a plan's event (B1): the event itself for one that was set by the workspace's right, else the root that it was
 * set in. A recurring one begins roots of the agent's own, apart for each person who had one set, and who pays for it (C11).
 */
const rootOfPlan = (services: InboxServices, plan: PlanRow, eventId: string): Root => {
  if (plan.setBy === "workspace" && !plan.root) return { id: eventId, kind: "plan" };
  if (plan.root && plan.cron === null) return plan.root;
  const last = services.identity.get().ownRoot;
  const own = ownRoot(last, eventId, services.clock.now());
  if (own !== last) services.identity.update({ ownRoot: own });
  const by = plan.root?.by;
  return { id: by === undefined ? own.id : eventIdOf(services, "root", own.id, by), kind: "agent", by };
};

/** Takes in a plan that is due. Its id follows from the plan and the due time. In a transaction. */
export const acceptPlan = (services: InboxServices, plan: PlanRow, dueAt: number): void => {
  const eventId = eventIdOf(services, "plan", plan.id, dueAt);
  const { id: planId, name: planName, instruction } = plan;
  const root = toldOutside(services.identity.get(), services.ids, rootOfPlan(services, plan, eventId));
  const said = services.redactions.clean({ planId, planName, instruction }, plan.updatedAt);
  enterOne(services, eventId, { type: "plan", ...said, scheduledAt: isoTime(dueAt), root });
};

const heartbeat = {
  planId: "heartbeat",
  planName: "heartbeat",
  instruction: "Look at your goals, plans and memories: do what is due. If nothing is, call skip.",
} as const;

/** Takes in a heartbeat, unless the one before still waits or the inbox is full. In a transaction. */
export const acceptHeartbeat = (services: InboxServices, dueAt: number): void => {
  if (services.inbox.holdsPlan(heartbeat.planId) || services.inbox.isFull(1)) return;
  const eventId = eventIdOf(services, "heartbeat", dueAt);
  const root: Root = { id: eventId, kind: "plan" };
  enterOne(services, eventId, { type: "plan", ...heartbeat, scheduledAt: isoTime(dueAt), root });
};
