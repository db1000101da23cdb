import { continuityFacts } from "../../protocol/continuity.ts";
import { erasedMark } from "../../protocol/entity.ts";
import type { Message } from "../../protocol/message.ts";
import type { MessageChange } from "../../protocol/message-change.ts";
import type { CallServices } from "../calls/calls.ts";
import type { Redactions } from "../redaction/redactions.ts";
import type { RunRow } from "../runs.ts";
import type { InboxRow } from "../schema.ts";
import type { Inbox } from "./inbox.ts";
import type { Waits } from "./waits.ts";

/**
 * Messages that were edited or deleted after the agent had them. One that waits is changed or removed. If a run has
 * taken it, its words are removed wherever they are.
 */
export type ChangingServices = CallServices & { inbox: Inbox; waits: Waits; redactions: Redactions };

/** The id of a message's event follows from the message's. */
export const messageEventId = (
  { ids, identity }: Pick<ChangingServices, "ids" | "identity">,
  messageId: string,
): string => ids.deriveFrom("evt", identity.mindId(), messageId);

/** A space was deleted: what waits from it goes at once. Its words go part by part, as the space tells them. In the transaction. */
export const leaveDeleted = ({ search, redactions }: ChangingServices, spaceId: string): void => {
  search.forgetSpace(spaceId);
  redactions.leaveSpace(spaceId);
};

const clockSlackMs = 10 * 60_000;

/** When its words were first said, and when the first of them was. */
const timesOf = ({ message, was, saidAt }: MessageChange): { since: number; saidAt: number[] } => {
  const createdAt = Date.parse(message.createdAt);
  const times = was.map((_, index) => (saidAt?.[index] ?? createdAt) - clockSlackMs);
  return { since: Math.min(createdAt - clockSlackMs, ...times), saidAt: times };
};

/** The call that a message shows, where it is this mind's: its results name it alone. */
const callOf = ({ journal, identity }: ChangingServices, { id, sender }: Message): string[] => {
  const content = sender.id === identity.get().id ? journal.firstNaming(id)?.content : undefined;
  return content && "callId" in content ? [content.callId] : [];
};

/** In the transaction that takes in the delivery. */
export const changeMessages = (services: ChangingServices, changes: MessageChange[]): void => {
  if (changes.length === 0) return;
  const { inbox, redactions } = services;
  /** The erased messages, by their author and space: one redaction takes each group. */
  const erased = new Map<string, MessageChange[]>();
  const eventIds = changes.map(({ message }) => messageEventId(services, message.id));
  const events = new Set(inbox.byEventIds(eventIds).map(({ eventId }) => eventId));
  for (const [index, change] of changes.entries()) {
    const { message, was } = change;
    const { id, spaceId, sender, text } = message;
    // Another change of the same message may have changed it since.
    const eventId = eventIds[index] ?? "";
    const row = events.has(eventId) ? inbox.byEventId(eventId) : undefined;
    if (row) changeEvent(services, row, change);
    const [mark, entityId, name] = was;
    if (mark === erasedMark && entityId !== undefined) {
      const whose = JSON.stringify([entityId, name, spaceId]);
      erased.set(whose, [...(erased.get(whose) ?? []), change]);
    } else {
      const messageIds = callOf(services, message);
      redactions.enter({ id, words: was, ...timesOf(change), text, senderName: sender.name, spaceId, messageIds });
    }
  }
  for (const [whose, all] of erased) {
    const [entityId, senderName, spaceId] = JSON.parse(whose) as string[];
    const words = all.flatMap(({ was }) => was.slice(3));
    const times = all.map(timesOf);
    const since = Math.min(...times.map((each) => each.since));
    const saidAt = times.flatMap((each) => each.saidAt.slice(3));
    // Results of a call name the call alone.
    const messageIds = all.flatMap(({ message: { id, toolCall } }) => (toolCall ? [id, toolCall.id] : [id]));
    const id = `${entityId} ${spaceId} ${all[0]?.seq}`;
    redactions.enter({ id, words, since, saidAt, senderName, spaceId, messageIds });
  }
};

const changeEvent = (services: ChangingServices, row: InboxRow, { kind, message }: MessageChange): void => {
  const { inbox, runs, spaces, identity, waits } = services;
  const { data, status } = row;
  if (data.type !== "space_message") return;
  const { delivered } = data;
  if (kind === "edited") {
    // The words of a change that another came after are not told: that one follows.
    if (message.text === undefined) return;
    const { text, mentions, editedAt } = message;
    inbox.become(row, {
      ...data,
      delivered: { ...delivered, message: { ...delivered.message, text, mentions, editedAt } },
    });
    return;
  }
  // The answers of a run that rests are read when it goes on. What it began with stays its own.
  const isUnread = ({ status, trigger, events }: RunRow): boolean =>
    status === "waiting_reply" && trigger.eventId !== row.eventId && events.includes(row.seq);
  const resting = runs.active().filter(isUnread);
  if (status === "taken" && resting.length === 0) {
    inbox.become(row, { ...data, delivered: { ...delivered, message: { ...message, text: "(deleted)" } } });
    return;
  }
  // An answer that no run has read is none: who asked waits on.
  waits.unanswered(message.id);
  for (const { ordinal, events } of resting) runs.update(ordinal, { events: events.filter((seq) => seq !== row.seq) });
  inbox.become(row, null);
  if (!continuityFacts(identity.get().config).readsHistory) return;
  spaces.settle(message.spaceId, { acknowledged: [message.seq], shownTo: 0 });
};
