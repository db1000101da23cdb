import type { ArchivalSource } from "../../protocol/archival.ts";
import { maxReadStretches } from "../../protocol/events.ts";
import type { Shown } from "../../protocol/exported-history.ts";
import type { Message, Origin } from "../../protocol/message.ts";
import type { Root } from "../../protocol/rpc.ts";
import type { RunTrigger } from "../../protocol/run.ts";
import { withoutNulls } from "../../shared/without-nulls.ts";
import { maxToldCauses } from "../bounds.ts";
import { messageIn } from "../context/consciousness/inbox-message.ts";
import { inboxEvents } from "../context/grammar.ts";
import { excerpt } from "../context/wording.ts";
import { homeOf, triggerTextCharacters } from "../inbox/batch.ts";
import { rootOf } from "../inbox/inbox.ts";
import { rootOfAnswer } from "../inbox/roots.ts";
import type { JournalRow } from "../journal.ts";
import type { Receipt } from "../records.ts";
import type { RunRow } from "../runs.ts";
import type { InboxRow } from "../schema.ts";
import { isSeen } from "../spaces.ts";
import { inputsIn, shownIn } from "./run-rows.ts";
import type { RunServices } from "./run-services.ts";

/** The run's events. Answers that it waited for, and the events of runs that it absorbed, have joined them. */
const eventsOf = (services: RunServices, run: RunRow): InboxRow[] =>
  services.inbox.rows(services.runs.at(run.ordinal)?.events ?? run.events);

const messagesIn = (rows: InboxRow[]): Message[] =>
  rows.flatMap(({ data }) => (data.type === "space_message" ? [data.delivered.message] : []));

const isPersons = ({ sender }: Message): boolean => sender.type !== "agent";

/** The root that the run passes on with its messages (B1). */
export const rootOfRun = (services: RunServices, run: RunRow): Root => {
  const roots = eventsOf(services, run).map(rootOf);
  const root = rootOfAnswer(roots, services.roots.wakes(roots.map(({ id }) => id)));
  if (!root) throw new Error(`run ${run.id} has no events`);
  return root;
};

/** The plan or the service's event, as others may know it. What an agent named its own plan may come from a space that they are not in. */
const runOrigin = ({ plans }: RunServices, { id: sourceRunId }: RunRow, { data }: InboxRow): Origin | undefined => {
  if (data.type === "service") return { sourceType: "service", sourceRunId, sourceName: data.serviceName };
  if (data.type !== "plan") return undefined;
  const setBy = plans.list().find(({ id }) => id === data.planId)?.setBy;
  return { sourceType: "plan", sourceRunId, ...(setBy === "workspace" ? { sourceName: data.planName } : {}) };
};

/** Those of a run's events that it may speak because of: what woke it, and answers that it awaited. The others it overheard. */
const causingOnes = (services: RunServices, run: RunRow, events: InboxRow[]): InboxRow[] => {
  const inputs = run.continuity === "timeline" ? inputsIn(services.journal.ofRun(run)) : [];
  const told = new Set([run.trigger.eventId, ...inputs.flatMap(({ eventIds = [] }) => eventIds)]);
  return events.filter(({ wakes, eventId, data }) => wakes || told.has(eventId) || ("answers" in data && data.answers));
};

/**
 * The origin of a message to this space: the newest event from a person, as far as its space shares it; else the plan or
 * the service's event. Of several kinds nobody knows which it was, so that others are told none of them. None if any
 * of these came from the target space itself; what it only overheard there hides nothing.
 */
export const originFor = (services: RunServices, run: RunRow, targetSpaceId: string): Origin | undefined => {
  const causes = causingOnes(services, run, eventsOf(services, run));
  if (causes.some(({ data }) => homeOf(data) === targetSpaceId)) return undefined;
  const message = messagesIn(causes).findLast(isPersons);
  const origins = causes.flatMap((cause) => runOrigin(services, run, cause) ?? []);
  const [first] = origins;
  const isOne = !message && new Set(origins.map((each) => JSON.stringify(each))).size === 1;
  if (first) return isOne ? first : { sourceType: "several", sourceRunId: run.id };
  const space = message && services.spaces.get(message.spaceId)?.snapshot;
  if (!space || space.shareOrigin === "none") return undefined;
  return {
    sourceSpaceId: message.spaceId,
    sourceSpaceName: space.name,
    ...(space.shareOrigin === "text" ? { sourceSenderName: message.sender.name, sourceEvent: message.text ?? "" } : {}),
  };
};

type Cause = Pick<RunTrigger, "type" | "senderName" | "text">;

/** What a line of an inbox tells that may have caused a message: not what was overheard. */
const causeIn = (line: string): Cause[] => {
  const cause = (type: Cause["type"], senderName: string, text: string): Cause[] => [
    { type, senderName, text: excerpt(text, triggerTextCharacters) },
  ];
  const plan = inboxEvents.plan.read(line);
  if (plan) return cause("plan", plan.name, plan.instruction);
  const service = inboxEvents.service.read(line);
  if (service) return cause("service", service.service, service.payload);
  const told = messageIn(line);
  return told && !("triggerSource" in told && told.triggerSource === "none")
    ? cause("space_message", told.senderName, told.text)
    : [];
};

/**
 * What a run had to answer as it said this, oldest first: for a cycle all of its inbox, else its own event, those of runs
 * that it had absorbed by then, and the answers that it awaited.
 */
const causesOf = ({ runs, journal }: RunServices, run: RunRow, { createdAt, origin }: Message): Cause[] => {
  const linesIn = (rows: JournalRow[]): string[] => [...new Set(inputsIn(rows).flatMap(({ lines }) => lines))];
  if (run.continuity === "timeline") {
    const absorbed = runs.absorbedInto(run.id).filter((each) => (each.completedAt ?? 0) <= Date.parse(createdAt));
    const all = [run, ...absorbed].sort((one, other) => (one.events[0] ?? 0) - (other.events[0] ?? 0));
    const isSeveral = origin && "sourceType" in origin && origin.sourceType === "several";
    const answers = isSeveral ? linesIn(journal.ofRuns([run], { texts: false })).slice(1) : [];
    return [...all.map(({ trigger }) => trigger), ...answers.flatMap(causeIn)];
  }
  if (run.trigger.eventCount === 1) return [run.trigger];
  return linesIn(journal.ofRun(run, run.journalFrom)).flatMap(causeIn);
};

/** Why a message was said, as this agent knows it: of its own ones it knows the plan and its instruction, or the event. */
export const knownOrigin = (services: RunServices, message: Message): Origin | undefined => {
  const { sender, origin } = message;
  if (!origin || !("sourceRunId" in origin) || sender.id !== services.identity.get().id) return origin;
  const { sourceType: kind, sourceName: name } = origin;
  const run = services.runs.get(origin.sourceRunId);
  const causes = (run ? causesOf(services, run, message) : []).filter(
    ({ type, senderName }) => kind === "several" || (type === kind && (name ?? senderName) === senderName),
  );
  const told = causes.slice(-maxToldCauses).map(({ type, senderName, text }) => ({ type, senderName, text }));
  const [cause, ...more] = told;
  if (!cause) return origin;
  if (kind === "several" || more.length > 0) {
    return { ...origin, sourceType: "several", sourceEvent: JSON.stringify(told) };
  }
  const { senderName: sourceName, text: sourceEvent } = cause;
  return { ...origin, ...withoutNulls({ sourceName: sourceName ?? null, sourceEvent: sourceEvent ?? null }) };
};

/**
 * The source of an archival entry: the newest message that the run took in its active space, a person's before an
 * agent's; else the newest of any space; else the space alone.
 */
export const sourceOf = (services: RunServices, run: RunRow, activeSpaceId: string | null): ArchivalSource => {
  const messages = messagesIn(eventsOf(services, run)).sort((a, b) => Number(isPersons(a)) - Number(isPersons(b)));
  const message = messages.findLast(({ spaceId }) => spaceId === activeSpaceId) ?? messages.at(-1);
  if (message) return { spaceId: message.spaceId, messageId: message.id, authorId: message.sender.id };
  return activeSpaceId === null ? {} : { spaceId: activeSpaceId };
};

/** The stretches of these places, oldest first. The newest `maxReadStretches` are told. */
const stretchesOf = (seqs: number[]): [number, number][] => {
  const stretches: [number, number][] = [];
  for (const seq of seqs) {
    const last = stretches.at(-1);
    if (last && last[1] === seq - 1) last[1] = seq;
    else stretches.push([seq, seq]);
  }
  return stretches.slice(-maxReadStretches);
};

/** Which messages of each space are among these events. Call it before they are deleted. */
export const receiptsOf = (rows: InboxRow[]): Receipt[] =>
  [...Map.groupBy(messagesIn(rows), ({ spaceId }) => spaceId)].map(([spaceId, ofSpace]) => {
    const messages = ofSpace.toSorted((one, other) => one.seq - other.seq);
    const [firstMessageId = "", messageId = firstMessageId] = [messages[0]?.id, messages.at(-1)?.id];
    const taken = stretchesOf(messages.map(({ seq }) => seq));
    const several = messages.length > 1 ? { firstMessageId } : {};
    return { spaceId, messageId, ...several, ...(taken.length > 1 ? { taken } : {}) };
  });

/** Tells which messages of a space this agent's runs have handled, as of now. Its own always count as handled. */
export const seenIn = (services: RunServices, spaceId: string): ((message: Message) => boolean) => {
  const row = services.spaces.get(spaceId);
  const mark = { upTo: row?.processedSeq ?? 0, beyond: row?.acknowledged ?? [] };
  const known = { deliveredTo: row?.cursor ?? 0, waiting: services.inbox.unprocessed(spaceId) };
  const { id: agentId } = services.identity.get();
  return ({ seq, sender }) => sender.id === agentId || isSeen(mark, known, seq);
};

export const shownOf = (spaceId: string, messages: Message[]): Shown[] =>
  messages.slice(-1).map(({ seq }) => ({ spaceId, upTo: seq }));

/** Settles the seen marks of an ended timeline run. Messages that it was shown count only if it was committed. */
export const settleSeen = (services: RunServices, events: InboxRow[], rows: JournalRow[], committed: boolean): void => {
  const messages = Map.groupBy(messagesIn(events), ({ spaceId }) => spaceId);
  const shown = Map.groupBy(committed ? shownIn(rows) : [], ({ spaceId }) => spaceId);
  for (const spaceId of new Set([...messages.keys(), ...shown.keys()])) {
    const acknowledged = (messages.get(spaceId) ?? []).map(({ seq }) => seq);
    const shownTo = Math.max(0, ...(shown.get(spaceId) ?? []).map(({ upTo }) => upTo));
    services.spaces.settle(spaceId, { acknowledged, shownTo });
  }
};
