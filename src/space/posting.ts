import type { Message, PostMessage } from "../protocol/message.ts";
import type { Principal } from "../protocol/principal.ts";
import type { AgentMessage, Root } from "../protocol/rpc.ts";
import { MessageText, maxTextBytes, textBytes } from "../protocol/text.ts";
import { isoTime } from "../shared/clock.ts";
import { ColloquyError } from "../shared/errors.ts";
import { mentionsIn } from "../shared/mentions.ts";
import { requireAwaited } from "../shared/require-awaited.ts";
import { messageOf } from "./log/log.ts";
import type { MemberRow } from "./members.ts";
import { acting, spaceIn } from "./rights.ts";
import { record, requireStorage, type SpaceServices } from "./services.ts";
import type { SettingsRow } from "./settings.ts";
import type { Routing } from "./wake.ts";

type NewMessage = Omit<Message, "seq" | "spaceId" | "kind" | "sender" | "mentions" | "createdAt"> & { text: string };

/**
 * A member says something. With a `clientKey` the message's id derives from sender and key, so that saying it again
 * finds it (D1); the same key with another body is `idempotency_mismatch`.
 */
export const post = (
  services: SpaceServices,
  principal: Principal,
  input: PostMessage,
): { message: Message; created: boolean } => {
  const { space, member } = acting(services, principal);
  const { text, replyTo, expectsReply, clientKey } = input;
  const id =
    clientKey === undefined
      ? services.ids.mintOwned("msg", space.id)
      : services.ids.deriveOwned("msg", space.id, "client", member.entityId, clientKey);
  const existing = services.log.findMessage(id);
  if (existing) {
    const message = messageOf(existing.frame);
    if (message.text !== text || message.replyTo !== replyTo || message.expectsReply !== expectsReply) {
      throw new ColloquyError("idempotency_mismatch", "This clientKey was used for another message: choose a new one");
    }
    // The crash that kept its answer from who sends it again may have cut off its delivery too.
    services.delivery.kick();
    return { message, created: false };
  }
  if (replyTo !== undefined) checkRepliable(services, replyTo);
  const root: Root = { id, kind: member.type === "human" ? "person" : "service" };
  const body: NewMessage = { id, text };
  if (replyTo !== undefined) body.replyTo = replyTo;
  if (expectsReply !== undefined) body.expectsReply = expectsReply;
  if (clientKey !== undefined) body.clientKey = clientKey;
  return { message: store(services, space, member, body, root), created: true };
};

/** An agent says something, once for each id (R2). It is the end of the stream that it was spoken in (D4). */
export const appendFromAgent = (services: SpaceServices, input: AgentMessage): Message => {
  const { agentId, messageId: id, text, root, origin, replyTo, expectsReply } = input;
  const streamId = services.live.endedBy(input.streamId);
  const space = spaceIn(services, input.workspaceId);
  if (!services.ids.isIssued("msg", id) || services.ids.ownerOf("msg", id) !== space.id) {
    throw new ColloquyError("invalid_request", `${id} is no id of a message of this space`);
  }
  const existing = services.log.findMessage(id);
  if (existing) {
    if (existing.entityId !== agentId) throw new ColloquyError("conflict", `${id} is another sender's message`);
    if (streamId !== undefined) services.live.repeated(streamId, agentId);
    return messageOf(existing.frame);
  }
  requireAwaited(services, input);
  const member = services.members.find(agentId);
  if (!member) throw new ColloquyError("not_a_member", `${agentId} is not in this space any more`);
  checkText(text);
  const body: NewMessage = { id, text };
  if (origin !== undefined) body.origin = origin;
  if (expectsReply) body.expectsReply = true;
  if (replyTo !== undefined) {
    checkRepliable(services, replyTo);
    body.replyTo = replyTo;
  }
  if (streamId === undefined) return store(services, space, member, body, root);
  services.live.flush(streamId, agentId);
  const message = store(services, space, member, { ...body, streamId }, root);
  services.live.said(streamId, agentId);
  return message;
};

const store = (
  services: SpaceServices,
  space: SettingsRow,
  sender: MemberRow,
  body: NewMessage,
  root: Root,
): Message => {
  requireStorage(services);
  const named = body.text.includes("@")
    ? services.members.all().map(({ entityId, name }) => ({ id: entityId, name }))
    : [];
  const mentions = mentionsIn(body.text, named);
  const pair = services.members.arePair();
  const message: Omit<Message, "seq"> = {
    ...body,
    spaceId: space.id,
    kind: "text",
    sender: { id: sender.entityId, name: sender.name, type: sender.type },
    ...(mentions.length > 0 ? { mentions } : {}),
    createdAt: isoTime(services.clock.now()),
  };
  const asksRouter = !pair && mentions.length === 0 && sender.type === "human" && isRouted(services, space);
  const routing: Routing = {
    root,
    wakePolicy: space.wakePolicy,
    mentions,
    pair,
    ...(asksRouter ? { asksRouter } : {}),
  };
  const { seq } = record(services, (append) => {
    const row = append({ type: "space.message", message, routing });
    if (asksRouter) services.router.hold(append, row);
    return row;
  });
  return { ...message, seq };
};

/** Whether the space has a router, and agents that it could wake. */
const isRouted = ({ members }: SpaceServices, { router, wakePolicy }: SettingsRow): boolean =>
  router !== null && wakePolicy === "addressed" && members.all().some(({ type }) => type === "agent");

const checkRepliable = ({ log }: SpaceServices, replyTo: string): void => {
  const row = log.findMessage(replyTo);
  if (!row) {
    throw new ColloquyError("unknown_reference", `${replyTo} is no message of this space: reply to one that is`);
  }
  if (messageOf(row.frame).kind === "tool_call") {
    throw new ColloquyError("not_repliable", `${replyTo} is a tool call: say what you have to say without replyTo`);
  }
};

const checkText = (text: string): void => {
  if (textBytes(text) > maxTextBytes) {
    throw new ColloquyError(
      "text_too_long",
      `A message has at most ${maxTextBytes} bytes of UTF-8 (maxTextBytes): say less, or in parts`,
    );
  }
  const parsed = MessageText.safeParse(text);
  if (!parsed.success) throw new ColloquyError("invalid_request", parsed.error.issues[0]?.message ?? "not a text");
};
