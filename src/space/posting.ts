import type { Message, PostMessage } from "../protocol/message.ts";
import type { Principal } from "../protocol/principal.ts";
import type { AgentMessage, Root } from "../protocol/rpc.ts";
import { MessageText, maxTextBytes, textBytes } from "../protocol/text.ts";
import { isoTime } from "../shared/clock.ts";
import { ColloquyError } from "../shared/errors.ts";
import { compartmentId } from "../shared/ids.ts";
import { mentionsIn } from "../shared/mentions.ts";
import { quote } from "../shared/quote.ts";
import { readersIn } from "../shared/readers.ts";
import { requireAwaited } from "../shared/require-awaited.ts";
import { type Append, messageOf } from "./log/log.ts";
import { type MemberRow, senderOf } from "./members.ts";
import { acting, spaceIn } from "./rights.ts";
import { requireStorage, type SpaceServices } from "./services.ts";
import type { SettingsRow } from "./settings.ts";
import { noteOrigin } from "./told-origins.ts";
import type { Routing } from "./wake.ts";

type NewMessage = Omit<Message, "seq" | "spaceId" | "kind" | "sender" | "mentions" | "createdAt"> & { text: string };

/**
 * A member says something. With a `clientKey` the message's id derives from sender and key, so saying it again finds it
 * (D1). The same key with another body is `idempotency_mismatch`. `inherited`: the root that a service goes on in (C9).
 */
export const post = (
  services: SpaceServices,
  principal: Principal,
  input: PostMessage,
  inherited?: Root,
): { message: Message; created: boolean } => {
  const { ids, log, delivery } = services;
  const { space, member } = acting(services, principal);
  const { text, replyTo, expectsReply, clientKey } = input;
  const id =
    clientKey === undefined
      ? ids.mintOwned("msg", space.id)
      : ids.deriveOwned("msg", space.id, "client", member.entityId, clientKey);
  const existing = log.findMessage(id);
  if (existing) {
    const message = messageOf(existing.frame);
    const isChanged = message.editedAt !== undefined || message.deleted !== undefined;
    const isOther = message.text !== text || message.replyTo !== replyTo || message.expectsReply !== expectsReply;
    // Once a message was changed, its first words are not known any more: the bodies cannot be compared.
    if (isOther && !isChanged) {
      throw new ColloquyError("idempotency_mismatch", "This clientKey was used for another message: choose a new one");
    }
    // The crash that kept its answer from who sends it again may have cut off its delivery too.
    delivery.kick();
    return { message, created: false };
  }
  const repliedTo = authorOf(services, replyTo);
  const isPerson = member.type === "human";
  const root: Root = isPerson ? { id, kind: "person", by: member.entityId } : (inherited ?? { id, kind: "service" });
  const message = store(services, space, member, { id, text, replyTo, expectsReply, clientKey }, { root, repliedTo });
  return { message, created: true };
};

/** An agent says something, once for each id (R2). It is the end of the stream that it was spoken in (D4). */
export const appendFromAgent = (services: SpaceServices, input: AgentMessage): Message => {
  const { ids, log, live } = services;
  const { agentId, messageId: id, text, root, origin, reads, replyTo, awaits = [], expectsReply } = input;
  const streamId = live.endedBy(input.streamId);
  const space = spaceIn(services, input.workspaceId);
  if (!ids.isIssued("msg", id) || ids.ownerOf("msg", id) !== space.id) {
    throw new ColloquyError("invalid_request", `${id} is no id of a message of this space`);
  }
  const existing = log.findMessage(id);
  if (existing) {
    if (existing.entityId !== agentId) throw new ColloquyError("conflict", `${id} is another sender's message`);
    if (streamId !== undefined) live.repeated(streamId, agentId);
    return messageOf(existing.frame);
  }
  const sender = requireSpeaker(services, input);
  if (awaits.length > 0 || expectsReply) requireHearing(space, input.mindId);
  requireAsShown(services, space, input);
  checkText(text);
  const repliedTo = authorOf(services, replyTo);
  const body = { id, text, origin, reads, expectsReply: awaits.length > 0 || expectsReply, replyTo, streamId };
  const isOutside = space.confidentialFrom !== null && input.mindId === undefined;
  const own = input.letOut ? "let_out" : isOutside ? "outside" : undefined;
  // What was let out is as old as the card that asked for it.
  const writtenAt = input.writtenAt ?? (input.letOut && input.shownAt);
  const saidAt: Routing["saidAt"] = writtenAt === undefined ? undefined : [[0, writtenAt]];
  return store(services, space, sender, body, { root, repliedTo, own, letOutBy: input.letOutBy, saidAt }, awaits);
};

/** Throws where the space is not what people were shown before they let these words out to it (C20). */
const requireAsShown = (
  { members }: SpaceServices,
  { name, confidentialFrom }: SettingsRow,
  { shownAsOpen, shownReaders, shownAt = Number.POSITIVE_INFINITY }: AgentMessage,
): void => {
  const changed = (what: string): ColloquyError =>
    new ColloquyError("approval_changed", `${what} since people were asked: ask them again`);
  if (shownAsOpen && confidentialFrom !== null) throw changed(`${quote(name)} has become confidential`);
  if (shownReaders === undefined) return;
  const present = members.all();
  const readers = readersIn(present);
  if (readers !== shownReaders) throw changed(`who read ${quote(name)} went from ${shownReaders} to ${readers}`);
  if (present.some(({ joinedAt }) => joinedAt > shownAt)) throw changed(`others read ${quote(name)}`);
};

/** The agent that says or shows something. Throws where it has stopped waiting (R5), or has left. */
export const requireSpeaker = (
  services: Pick<SpaceServices, "clock" | "members" | "ids" | "settings">,
  { agentId, mindId, until }: Pick<AgentMessage, "agentId" | "mindId" | "until">,
): MemberRow => {
  const { clock, members } = services;
  requireAwaited({ clock }, { until });
  requireOwnMind(services, { agentId, mindId });
  const sender = members.find(agentId);
  if (sender) return sender;
  throw new ColloquyError("not_a_member", `${agentId} is not in this space any more`);
};

/** Throws where the compartment of another space would speak here (C18). */
export const requireOwnMind = (
  { ids, settings }: Pick<SpaceServices, "ids" | "settings">,
  { agentId, mindId }: Pick<AgentMessage, "agentId" | "mindId">,
): void => {
  if (mindId === undefined || mindId === compartmentId(ids, agentId, settings.find()?.id ?? "")) return;
  const detail = "A run of a confidential space speaks in that space alone: say it there, and let its people carry it";
  throw new ColloquyError("forbidden", detail);
};

/** Throws where an agent's open mind would wait for people of a confidential space, whom it does not hear (C18). */
export const requireHearing = ({ confidentialFrom }: SettingsRow, mindId: string | undefined): void => {
  if (confidentialFrom === null || mindId !== undefined) return;
  throw new ColloquyError(
    "forbidden",
    "This space is confidential: a run from outside does not hear its answers. Say it without waiting, or ask in an open space",
  );
};

/** Records a message, which is the end of the stream that it was made in: all its text is told before. */
export const recordSpoken = <T>(
  { record, live }: SpaceServices,
  { entityId }: MemberRow,
  streamId: string | undefined,
  write: (append: Append) => T,
): T => {
  if (streamId === undefined) return record(write);
  live.flush(streamId, entityId);
  const value = record(write);
  live.said(streamId, entityId);
  return value;
};

/** `awaits`: whose answers its sender waits for. They are addressed, mentioned or not. */
const store = (
  services: SpaceServices,
  space: SettingsRow,
  sender: MemberRow,
  body: NewMessage,
  known: Pick<Routing, "root" | "repliedTo" | "own" | "letOutBy" | "saidAt">,
  awaits: string[] = [],
): Message => {
  requireStorage(services);
  const members = services.members.all();
  const mentions = mentionsIn(
    body.text,
    members.map(({ entityId: id, name }) => ({ id, name })),
  );
  const pair = members.length === 2;
  const message: Omit<Message, "seq"> = {
    ...body,
    spaceId: space.id,
    kind: "text",
    sender: senderOf(sender),
    mentions: mentions.length > 0 ? mentions : undefined,
    createdAt: isoTime(services.clock.now()),
  };
  const addressesNobody = sender.type === "human" && !pair && mentions.length === 0;
  const isRouted =
    space.router !== null && space.wakePolicy === "addressed" && members.some(({ type }) => type === "agent");
  const asksRouter = addressesNobody && isRouted ? true : undefined;
  const addressed = [...new Set([...mentions, ...awaits])];
  const routing: Routing = { ...known, wakePolicy: space.wakePolicy, mentions: addressed, pair, asksRouter };
  const { seq } = recordSpoken(services, sender, body.streamId, (append) => {
    const row = append({ type: "space.message", message, routing });
    noteOrigin(services, row);
    if (asksRouter) services.router.hold(append, row);
    return row;
  });
  return { ...message, seq };
};

/** The author of the message that is replied to. Throws where nobody can reply to it. */
const authorOf = ({ log }: SpaceServices, replyTo: string | undefined): string | undefined => {
  if (replyTo === undefined) return undefined;
  const row = log.findMessage(replyTo);
  if (!row) {
    throw new ColloquyError("unknown_reference", `${replyTo} is no message of this space: reply to one that is`);
  }
  const repliedTo = messageOf(row.frame);
  if (repliedTo.deleted) throw new ColloquyError("gone", `${replyTo} was deleted: say it without replyTo`);
  if (repliedTo.kind === "tool_call") {
    throw new ColloquyError("not_repliable", `${replyTo} is a tool call: say what you have to say without replyTo`);
  }
  return row.entityId ?? undefined;
};

export const checkText = (text: string): void => {
  if (textBytes(text) > maxTextBytes) {
    const detail = `A message has at most ${maxTextBytes} bytes of UTF-8 (maxTextBytes): say less, or in parts`;
    throw new ColloquyError("text_too_long", detail);
  }
  const parsed = MessageText.safeParse(text);
  if (!parsed.success) throw new ColloquyError("invalid_request", parsed.error.issues[0]?.message ?? "not a text");
};
