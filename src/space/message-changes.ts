import type { Message } from "../protocol/message.ts";
import { hasWorkspaceRights, type Principal } from "../protocol/principal.ts";
import { isoTime } from "../shared/clock.ts";
import { ColloquyError } from "../shared/errors.ts";
import { compartmentId } from "../shared/ids.ts";
import { mentionsIn } from "../shared/mentions.ts";
import { type SaidAt, saidAfter, toldWas, type Was } from "../shared/stretches.ts";
import { maxAskedAgents } from "./bounds.ts";
import type { Left } from "./former-agents.ts";
import { type LogRow, messageOf, tombstoneOf } from "./log/log.ts";
import { fromOf, wasOf } from "./message-words.ts";
import { checkText } from "./posting.ts";
import { acting, readable } from "./rights.ts";
import { requireStorage, type SpaceServices } from "./services.ts";
import { forgetTold } from "./told-origins.ts";

/**
 * Messages that people and services edit, and that they and admins delete.
 *
 * Invariants
 * 1. A change is an event of the log. Its transaction rewrites every frame that tells the message. Then only the
 *    change's own `was` holds the old words, until each agent was told.
 * 2. An edit wakes nobody: who is woken was decided by the message as it was posted. Mentions of the new text are for show.
 * 3. What was deleted stays deleted. A second deletion answers the first, and the same edit again changes nothing.
 */
const rowOf = ({ log }: SpaceServices, messageId: string): LogRow => {
  const row = log.findMessage(messageId);
  if (row) return row;
  throw new ColloquyError("not_found", `There is no message ${messageId} in this space`);
};

/**
 * A message as it becomes: `before` is what it was, `updatedSeq` its call's newest event. `was`: the words that go, if not all;
 * `saidAt`: of another text.
 */
export type Changed = {
  row: LogRow;
  before: Message;
  message: Message;
  updatedSeq?: number | undefined;
  was?: Was[];
  saidAt?: SaidAt;
};

/** Agents that left hear no new words: they are told of an edit as of a deletion. */
const leftOf = (row: LogRow, before: Message, message: Message, seq: number, was: Was[]): Left => {
  const rest = tombstoneOf(message, message.deleted ?? { at: message.editedAt ?? message.createdAt });
  return {
    change: { seq, kind: "deleted", message: rest, ...toldWas(was, rest.createdAt) },
    from: fromOf(row, before),
  };
};

/** The space is deleted: what was let out into it goes where it was said, too. In that transaction. */
export const forgetLetOut = ({ log, formerAgents, clock }: SpaceServices): void => {
  const at = isoTime(clock.now());
  const left = log.letOut().map((row) => {
    const before = messageOf(row.frame);
    return leftOf(row, before, tombstoneOf(before, { at }), row.seq, wasOf(before, row));
  });
  formerAgents.tell(left);
};

/** Stores messages as they are now, and tells them. */
export const change = (services: SpaceServices, changes: Changed[], deletedBy?: Principal): void => {
  const { log, subscribers, record, toolCalls, formerAgents } = services;
  // Where no agent is, nobody is told to forget them.
  const isTold = subscribers.anyAgentBut("");
  record((append) => {
    const left: Left[] = [];
    for (const { row, before, message, updatedSeq, was = wasOf(before, row), saidAt } of changes) {
      const type = message.deleted ? "message.deleted" : "message.updated";
      // A space that told a message hears that the source space ends, even if the message was deleted before.
      const routing = message.deleted && row.routing?.told ? row.routing : null;
      const { seq } = append({ type, message, was: isTold ? was : null, routing, ...fromOf(row, before) });
      log.amend(row, message, seq, updatedSeq, saidAt);
      left.push(leftOf(row, before, message, seq, was));
      const { id, spaceId, sender, toolCall } = message;
      const isCall = updatedSeq !== undefined && toolCall !== undefined && !message.deleted;
      if (isCall) toolCalls.store({ ...message, kind: "tool_call", toolCall }, updatedSeq, null);
      else if (updatedSeq !== undefined) toolCalls.remove(row.seq);
      forgetTold(services, row, was);
      // Who speaks in a confidential space is for its members (C19).
      const detail = { spaceId, ...(services.settings.find()?.confidentialFrom === null && { sender: sender.id }) };
      if (deletedBy) services.audit.note("message.deleted", deletedBy, id, detail);
    }
    formerAgents.tell(left);
  });
};

export const editMessage = (
  services: SpaceServices,
  principal: Principal,
  messageId: string,
  text: string,
): Message => {
  const { member } = acting(services, principal);
  const row = rowOf(services, messageId);
  const before = messageOf(row.frame);
  if (before.kind === "tool_call" || before.sender.id !== member.entityId || member.type === "agent") {
    const detail = "Only the person or service who said a message edits it: say it anew yourself";
    throw new ColloquyError("forbidden", detail);
  }
  if (before.deleted) throw new ColloquyError("gone", "The message was deleted: say it anew");
  checkText(text);
  if (before.text === text) return before;
  requireStorage(services);
  const people = services.members.all().map(({ entityId: id, name }) => ({ id, name }));
  const mentions = mentionsIn(text, people);
  const { mentions: _, ...kept } = before;
  const now = services.clock.now();
  const message: Message = { ...kept, text, ...(mentions.length > 0 && { mentions }), editedAt: isoTime(now) };
  const saidBefore = row.routing?.saidAt ?? [[0, Date.parse(before.createdAt)]];
  const saidAt = saidAfter({ text: before.text ?? "", saidAt: saidBefore }, text, now);
  change(services, [{ row, before, message, saidAt }]);
  return message;
};

/** Throws where the principal may not delete the message. */
const requireDeleting = (services: SpaceServices, principal: Principal, before: Message): void => {
  const { entityId } = principal;
  const isOwn = entityId !== undefined && before.sender.id === entityId && before.sender.type !== "agent";
  if (isOwn) acting(services, principal);
  else readable(services, principal, false);
  if (isOwn || hasWorkspaceRights(principal)) return;
  throw new ColloquyError("forbidden", "Only its sender, an admin or a secret key deletes a message: ask an admin");
};

/** The newest event of a tool call that is over, and that its agent's mind has heard; `open` while it is not. */
export const endOfCall = (
  { ids, settings, log, toolCalls, subscribers }: SpaceServices,
  { seq }: LogRow,
  agentId: string,
): number | "open" | undefined => {
  const call = toolCalls.at(seq);
  if (!call) return undefined;
  const space = settings.find();
  const isInside = space !== undefined && call.updatedSeq > (space.confidentialFrom ?? call.updatedSeq);
  const mindId = isInside ? compartmentId(ids, agentId, space.id) : agentId;
  const cursor = subscribers.find(mindId)?.cursor ?? Number.POSITIVE_INFINITY;
  const isUnheard = call.updatedSeq > cursor && log.at(call.updatedSeq)?.outcome != null;
  return call.isOpen || isUnheard ? "open" : call.updatedSeq;
};

export const deleteMessage = (
  services: SpaceServices,
  principal: Principal,
  messageId: string,
): { message: Message; agents: string[]; isConfidential: boolean } => {
  const isConfidential = readable(services, principal, false).confidentialFrom !== null;
  const row = rowOf(services, messageId);
  const [before = messageOf(row.frame)] = services.toolCalls.current([messageOf(row.frame)]);
  requireDeleting(services, principal, before);
  const agents = services.log.agents(row.seq).slice(0, maxAskedAgents);
  if (before.deleted) return { message: before, agents, isConfidential };
  const { entityId: id } = principal;
  const name = id === undefined ? undefined : services.members.find(id)?.name;
  const by = id === undefined ? {} : { by: { id, ...(name !== undefined && { name }) } };
  const message = tombstoneOf(before, { at: isoTime(services.clock.now()), ...by });
  const updatedSeq = endOfCall(services, row, before.sender.id);
  if (updatedSeq === "open") {
    const detail = "The tool call is not over: answer it or cancel its run, then delete its message";
    throw new ColloquyError("conflict", detail);
  }
  change(services, [{ row, before, message, updatedSeq }], principal);
  return { message, agents, isConfidential };
};

/**
 * Deletes messages that were said before a time, at most so many, of those after a place in the log. Answers up to where none
 * is left that is to be deleted, and whether there may be more. What a tool call tells goes once it is over.
 */
export const expireMessages = (
  services: SpaceServices,
  from: number,
  before: string,
  most: number,
): { after: number; more: boolean } => {
  const { log, toolCalls, clock } = services;
  let firstLeft = toolCalls.firstOpen() ?? Number.POSITIVE_INFINITY;
  const rows = log.living(from, most);
  const [expired, deleted]: [Changed[], Message["deleted"]] = [[], { at: isoTime(clock.now()), expired: true }];
  let [after, more] = [from, rows.length === most];
  for (const row of rows) {
    const [message = messageOf(row.frame)] = toolCalls.current([messageOf(row.frame)]);
    more &&= message.createdAt < before;
    if (message.createdAt >= before) break;
    const updatedSeq = endOfCall(services, row, message.sender.id);
    if (updatedSeq === "open") firstLeft = Math.min(firstLeft, row.seq);
    else expired.push({ row, before: message, message: tombstoneOf(message, deleted), updatedSeq });
    after = Math.max(from, Math.min(row.seq, firstLeft - 1));
  }
  if (expired.length > 0) change(services, expired);
  return { after, more: more && expired.length > 0 };
};
