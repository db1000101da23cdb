import type { ArchivalSource } from "../../protocol/archival.ts";
import { continuityFacts } from "../../protocol/continuity.ts";
import { maxReadStretches } from "../../protocol/events.ts";
import type { Shown } from "../../protocol/exported-history.ts";
import type { Message, Origin } from "../../protocol/message.ts";
import type { Root } from "../../protocol/rpc.ts";
import type { RunTrigger } from "../../protocol/run.ts";
import { withoutNulls } from "../../shared/without-nulls.ts";
import { maxBlockSources, maxToldCauses } from "../bounds.ts";
import { messageIn } from "../context/consciousness/inbox-message.ts";
import { inboxEvents } from "../context/grammar.ts";
import { excerpt } from "../context/wording.ts";
import { homeOf, triggerTextCharacters } from "../inbox/batch.ts";
import { rootOf } from "../inbox/inbox.ts";
import { rootOfAnswer } from "../inbox/roots.ts";
import type { JournalRow } from "../journal.ts";
import type { KnownOrigin, Receipt } from "../records.ts";
import type { RunRow } from "../runs.ts";
import type { InboxRow } from "../schema.ts";
import { isSeen } from "../spaces.ts";
import { inputsIn, shownIn } from "./run-rows.ts";
import type { RunServices } from "./run-services.ts";

/** The run's events. Answers that it waited for, and the events of runs that it absorbed, have joined them. */
const eventsOf = (services: RunServices, run: RunRow): InboxRow[] =>
  services.inbox.rows(services.runs.at(run.ordinal)?.events ?? run.events);

/** The messages of others. */
const messagesIn = (rows: InboxRow[]): Message[] =>
  rows.flatMap(({ data }) => (data.type === "space_message" && !data.delivered.own ? [data.delivered.message] : []));

const isPersons = ({ sender }: Message): boolean => sender.type !== "agent";

/** The events that ask for a run: not those that were overheard. */
const askingOf = (rows: InboxRow[]): InboxRow[] => {
  const asking = rows.filter(({ wakes }) => wakes);
  return asking.length > 0 ? asking : rows;
};

/** The root that the run passes on with all that it begins (B1): of those who pay for the run, where there are such (C11). */
export const rootOfRun = (services: RunServices, run: RunRow): Root => {
  const asking = askingOf(eventsOf(services, run)).map(rootOf);
  const paid = asking.filter(({ by }) => (by ?? null) === run.person);
  const roots = paid.length > 0 ? paid : asking;
  const root = rootOfAnswer(roots, services.roots.wakes(roots.map(({ id }) => id)));
  if (!root) throw new Error(`run ${run.id} has no events`);
  return root;
};

/**
 * The payers of a run with these events, in the order in which their shares are tried (C11). They are the persons
 * who began the events, most events in the batch first. `null` stands for what no person began, which falls under no share.
 */
export const payersIn = (batch: InboxRow[]): (string | null)[] => {
  const byPerson = Map.groupBy(askingOf(batch), (row) => rootOf(row).by ?? null);
  const payers = [...byPerson].sort(([, one], [, other]) => other.length - one.length).map(([person]) => person);
  return payers.length > 0 ? payers : [null];
};

/** Who pays for a run. Whoever had it ask pays for answers that joined it later. */
export const payersOf = (services: RunServices, run: RunRow): (string | null)[] =>
  payersIn(services.inbox.rows(run.events).filter(({ rootId }) => run.roots.includes(rootId)));

/**
 * Holds the waiting events of a person whose share of an hour's runs is full, and answers whether it is. The share is
 * the same as of the day's tokens (C10). In a transaction.
 */
export const holdBeyondHour = ({ identity, runs, inbox }: RunServices, person: string | null | undefined): boolean => {
  const share = hourShareOf(identity);
  const until = person && share !== undefined ? runs.shareFullUntil(person, share) : undefined;
  if (person && until !== undefined) inbox.spend(person, until, [], "runs");
  return until !== undefined;
};

/** The runs that one person may begin in an hour; undefined where one may begin all. */
const hourShareOf = (identity: RunServices["identity"]): number | undefined => {
  const { maxRunsPerHour, maxShareOfPerson } = identity.get().config.limits;
  return maxShareOfPerson === 1 ? undefined : Math.ceil(maxRunsPerHour * maxShareOfPerson);
};

/** The first event that asks for a run, of who has none under way before others' (C10). */
export const firstWaking = ({ inbox, runs }: RunServices): InboxRow | undefined =>
  inbox.nextWaking(runs.running().map(({ person }) => person ?? "")) ?? inbox.nextWaking();

/** Whether so many runs began within the hour that one person may have begun their share. */
export const mayBeBeyondHour = ({ identity, runs }: RunServices): boolean => {
  const share = hourShareOf(identity);
  return share !== undefined && runs.hourFullUntil(share) !== undefined;
};

/** The plan or the service that an event is of. */
const planOrService = ({ data }: InboxRow): { type: "plan" | "service"; name: string } | undefined => {
  if (data.type === "service") return { type: data.type, name: data.serviceName };
  return data.type === "plan" ? { type: data.type, name: data.planId } : undefined;
};

/** Those of a run's events that it may speak because of: what woke it, and answers that it awaited. The others it overheard. */
const causingOnes = (services: RunServices, run: RunRow, events: InboxRow[]): InboxRow[] => {
  const inputs = continuityFacts(run).waitsForAnswers ? inputsIn(services.journal.ofRun(run)) : [];
  const told = new Set([run.trigger.eventId, ...inputs.flatMap(({ eventIds = [] }) => eventIds)]);
  return events.filter(({ wakes, eventId, data }) => wakes || told.has(eventId) || ("answers" in data && data.answers));
};

/**
 * The origin of a message to this space, as others are told it (C7). It refers to the newest message of a person, and
 * tells of its words what its space chose to share. Without one it refers to the run of a plan or of a service's event.
 * There is none where events of several kinds began the run, or where one of them came from the target space itself.
 * Events that were only overheard there hide nothing. No origin names a space that is confidential by now (C17). None
 * names one that the agent has left: it no longer hears what becomes of that space.
 */
export const originFor = (services: RunServices, run: RunRow, targetSpaceId: string): Origin | undefined => {
  const causes = causingOnes(services, run, eventsOf(services, run));
  if (causes.some(({ data }) => homeOf(data) === targetSpaceId)) return undefined;
  const message = messagesIn(causes).findLast(isPersons);
  const others = causes.flatMap((cause) => planOrService(cause) ?? []);
  const [first] = others;
  if (first) {
    const isOne = !message && others.every(({ type, name }) => type === first.type && name === first.name);
    return { sourceType: isOne ? first.type : "several", sourceRunId: run.id };
  }
  const { snapshot: space, left } = (message && services.spaces.get(message.spaceId)) ?? {};
  if (!message || !space || left || space.confidential || space.shareOrigin === "none") return undefined;
  const words = { sourceSenderName: message.sender.name, sourceEvent: message.text ?? "" };
  return {
    ...{ spaceId: message.spaceId, messageId: message.id },
    ...(space.shareOrigin === "reference" ? {} : { sourceSpaceName: space.name }),
    ...(space.shareOrigin === "text" ? words : {}),
  };
};

type Cause = Pick<RunTrigger, "type" | "senderName" | "text" | "spaceId">;

/** The possible causes of a message in a line of an inbox. What was overheard is none. */
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
    ? cause("space_message", told.senderName, told.text).map((each) => ({ ...each, spaceId: told.spaceId }))
    : [];
};

/**
 * What a run had to answer as it said this, oldest first. A cycle had all of its inbox. Any other had its own event,
 * those of runs that it had absorbed by then, and the answers that it awaited.
 */
const causesOf = ({ runs, journal }: RunServices, run: RunRow, { createdAt, origin }: Message): Cause[] => {
  const linesIn = (rows: JournalRow[]): string[] => [...new Set(inputsIn(rows).flatMap(({ lines }) => lines))];
  if (!continuityFacts(run).takesBatches) {
    const absorbed = runs.absorbedInto(run.id).filter((each) => (each.completedAt ?? 0) <= Date.parse(createdAt));
    const all = [run, ...absorbed].sort((one, other) => (one.events[0] ?? 0) - (other.events[0] ?? 0));
    const isSeveral = origin && "sourceType" in origin && origin.sourceType === "several";
    const answers = isSeveral ? linesIn(journal.ofRuns([run], { texts: false })).slice(1) : [];
    return [...all.map(({ trigger }) => trigger), ...answers.flatMap(causeIn)];
  }
  if (run.trigger.eventCount === 1) return [run.trigger];
  return linesIn(journal.ofRun(run, run.journalFrom)).flatMap(causeIn);
};

/** A message's space, sender and words, as the journal has them from the event that told it. */
const wordsOf = (
  { journal }: RunServices,
  messageId: string,
): { sourceSpaceName?: string; sourceSenderName?: string; sourceEvent?: string } => {
  const meta = journal.firstNaming(messageId)?.meta;
  const lines = meta?.kind === "inbox" ? meta.lines : [];
  const told = lines.map(messageIn).find((each) => each?.messageId === messageId);
  if (!told) return {};
  const { spaceName: sourceSpaceName, senderName: sourceSenderName, text } = told;
  return { sourceSpaceName, sourceSenderName, sourceEvent: excerpt(text, triggerTextCharacters) };
};

/** Why a message was said, as an agent knows it. `reads`: the spaces whose messages that tells, with their words. */
type Told = { origin?: KnownOrigin | undefined; reads: string[] };

/** By this agent's journal. Of its own ones it knows who asked what where, the plan and its instruction, or the event. */
export const toldOrigin = (services: RunServices, message: Message): Told => {
  const { sender, origin } = message;
  const isOwn = sender.id === services.identity.get().id;
  if (!origin) return { reads: [] };
  if (!("sourceRunId" in origin)) {
    const { spaceId, messageId } = origin;
    const known = isOwn && messageId !== undefined ? { ...origin, ...wordsOf(services, messageId) } : origin;
    return { origin: known, reads: known.sourceEvent === undefined ? [] : [spaceId] };
  }
  const { sourceType: kind } = origin;
  const run = isOwn ? services.runs.get(origin.sourceRunId) : undefined;
  const causes = (run ? causesOf(services, run, message) : []).filter(
    ({ type }) => kind === "several" || type === kind,
  );
  const last = causes.slice(-maxToldCauses);
  const reads = last.flatMap(({ spaceId }) => spaceId ?? []);
  const told = last.map(({ type, senderName, text }) => ({ type, senderName, text }));
  const [cause, ...more] = told;
  if (!cause) return { origin, reads };
  if (kind === "several" || more.length > 0) {
    return { origin: { ...origin, sourceType: "several", sourceEvent: JSON.stringify(told) }, reads };
  }
  const { senderName: sourceName, text: sourceEvent } = cause;
  const words = withoutNulls({ sourceName: sourceName ?? null, sourceEvent: sourceEvent ?? null });
  return { origin: { ...origin, ...words }, reads };
};

export const knownOrigin = (services: RunServices, message: Message): KnownOrigin | undefined =>
  toldOrigin(services, message).origin;

/**
 * The source of an archival entry: the newest message that the run took in its active space, else of any space. A
 * person's goes before an agent's. Without a message it is the space alone.
 */
export const sourceOf = (services: RunServices, run: RunRow, activeSpaceId: string | null): ArchivalSource => {
  const messages = messagesIn(eventsOf(services, run)).sort((a, b) => Number(isPersons(a)) - Number(isPersons(b)));
  const message = messages.findLast(({ spaceId }) => spaceId === activeSpaceId) ?? messages.at(-1);
  if (message) return { spaceId: message.spaceId, messageId: message.id, authorId: message.sender.id };
  return activeSpaceId === null ? {} : { spaceId: activeSpaceId };
};

/** The sources of a block that the run writes: the newest messages that it took. Those that woke it come last, and stay. */
export const sourcesOf = (services: RunServices, run: RunRow): string[] => {
  const events = eventsOf(services, run).sort((one, other) => Number(one.wakes) - Number(other.wakes));
  const newest = messagesIn(events).slice(-maxBlockSources);
  return newest.map(({ id }) => id);
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
