import * as z from "zod";
import { messageId } from "../../../protocol/ids.ts";
import type { Message } from "../../../protocol/message.ts";
import { MessageText } from "../../../protocol/text.ts";
import { shownCall } from "../../../shared/call-line.ts";
import { ColloquyError, unwrap } from "../../../shared/errors.ts";
import { absentIn, mentionsIn } from "../../../shared/mentions.ts";
import { maxWindowMessages, maxWindowTokens, spaceAnswerMs } from "../../bounds.ts";
import { callWithRetry, spaceMessage, spaceWindow } from "../../call-with-retry.ts";
import type { KnownOrigin } from "../../records.ts";
import { estimateText, firstFitting } from "../../tokens.ts";
import {
  isDeafTo,
  releaseFrom,
  requireHearing,
  requireOwnSpace,
  requireReleased,
  whyNoHistory,
} from "../confidential.ts";
import { asUnknownOutcome } from "../outcome.ts";
import { acts, type Consent, defineTool, type EntityName, looks, type ToolContext, type ToolOutput } from "../tool.ts";

const Limit = z.int().min(1).max(maxWindowMessages).default(50);

const asEntry = (message: Message, isSeen: SeenBefore, origin: KnownOrigin | undefined) => ({
  id: message.id,
  senderName: message.sender.name,
  senderType: message.sender.type,
  ...(message.toolCall ? { kind: "tool_call", content: shownCall(message.toolCall) } : { content: message.text ?? "" }),
  timestamp: message.createdAt,
  ...(isSeen === undefined ? {} : { seen: isSeen(message) }),
  ...(message.replyTo === undefined ? {} : { replyTo: message.replyTo }),
  ...(origin === undefined ? {} : { origin }),
});

/** Tokens of a result beside its messages. */
const frameTokens = 150;

type SeenBefore = ((message: Message) => boolean) | undefined;

/** The newest messages that fit the room there is, oldest first; what was left out is counted, never silent. */
const entries = (messages: Message[], isSeen: SeenBefore, context: ToolContext) => {
  const origins = messages.map((message) => context.originOf(message));
  const newest = messages.map((message, index) => asEntry(message, isSeen, origins[index]?.origin)).reverse();
  const room = Math.min(maxWindowTokens, context.roomTokens() - frameTokens);
  const fit = firstFitting(newest, room, (entry) => estimateText(JSON.stringify(entry)));
  const shown = fit.length === 0 ? newest.slice(0, 1) : fit;
  const older = newest.length - shown.length;
  const value = {
    history: shown.reverse(),
    ...(older === 0 ? {} : { omitted: `${older} older messages did not fit; page back with read_messages` }),
  };
  return { value, reads: origins.slice(older).flatMap(({ reads }) => reads) };
};

const notMember = (): ColloquyError =>
  new ColloquyError("not_a_member", "you are not a member of that space; YOUR SPACES lists yours");

/** As far as the agent has heard. The space itself has the last word. */
const requireMembership = ({ services }: ToolContext, spaceId: string): void => {
  if (!services.spaces.isMember(spaceId)) {
    throw notMember();
  }
};

/**
 * A page of a space's messages. Where the agent marks what it has seen, it has seen these once its run is committed.
 */
const pageOf = async (context: ToolContext, spaceId: string, page: { limit: number; offset: number }) => {
  requireMembership(context, spaceId);
  const { services, signal } = context;
  const { messages, ...window } = unwrap(await callWithRetry(() => spaceWindow(services, spaceId, page), signal));
  const newest = messages.at(-1);
  const shown = context.seenIn && newest ? { shown: [{ spaceId, upTo: newest.seq }] } : {};
  const { value, reads } = entries(messages, context.seenIn?.(spaceId), context);
  // What it does not hear it has not read, and it tells of no confidential space.
  const [own, why] = isDeafTo(services, spaceId) ? [[], whyNoHistory] : [[spaceId], {}];
  const told: Pick<ToolOutput, "shown" | "reads"> = { ...shown, reads: [...new Set([...own, ...reads])] };
  return { ...why, ...value, told, window };
};

/** The ways to speak. Message ids derive from the call, so saying it again stores nothing twice. */
const text = MessageText.describe("Message text. Markdown is shown as such.");
const wait = z
  .boolean()
  .default(false)
  .describe(
    "Pause until everyone whom the text mentions as @Name has replied. If it mentions nobody: the author of the message that you reply to, or the other member of a space of two.",
  );

/** The remedy where a wait names nobody and nobody is meant. */
const nameSomebody = "name those whose answers you await as @Name, or leave out wait";
const waitsForNobody = (why: string): ColloquyError =>
  new ColloquyError("tool_input_invalid", `wait: ${why}; ${nameSomebody}`);

/** Who wrote a message of the space. Throws `unknown_reference` where there is no such message. */
const authorOf = async ({ services, signal }: ToolContext, spaceId: string, messageId: string): Promise<EntityName> => {
  const answer = await callWithRetry(() => spaceMessage(services, spaceId, messageId), signal);
  if (answer.ok || answer.problem.code !== "not_found") return unwrap(answer).sender;
  const detail = "replyToMessageId: it is no message of the active space; read_messages shows those that are";
  throw new ColloquyError("unknown_reference", detail);
};

/**
 * The members whose answers a message awaits: those whom it mentions as `@Name`. If there is none, the author of the
 * message that it answers, or the other member of a space of two. Throws where it would wait for nobody.
 */
const awaitedBy = async (
  context: ToolContext,
  spaceId: string,
  text: string,
  replyTo: string | undefined,
): Promise<EntityName[]> => {
  const { spaces, identity } = context.services;
  const { id: agentId } = identity.get();
  const members = spaces.get(spaceId)?.snapshot.members ?? [];
  const others = members.filter(({ id }) => id !== agentId).map(({ id, name }) => ({ id, name }));
  const named = new Set(mentionsIn(text, members));
  const mentioned = others.filter(({ id }) => named.has(id));
  if (mentioned.length > 0) return mentioned;
  const author = replyTo === undefined ? undefined : await authorOf(context, spaceId, replyTo);
  const answered = others.filter(({ id }) => id === author?.id);
  if (answered.length > 0) return answered;
  if (author && author.id !== agentId) throw waitsForNobody("who wrote that message has left the space");
  if (others.length === 1) return others;
  if (others.length === 0) throw waitsForNobody("nobody else is in the active space");
  if (author || named.has(agentId)) throw waitsForNobody("you would wait for yourself");
  throw waitsForNobody("the text mentions no other member of the active space, which has several");
};

const say = async (
  context: ToolContext,
  words: string,
  how: { replyTo?: string; wait: boolean },
): Promise<ToolOutput> => {
  const spaceId = context.activeSpaceId;
  if (spaceId === null) throw new ColloquyError("no_active_space", "no space is active: call enter_space first");
  if (!context.replayed) {
    requireMembership(context, spaceId);
    requireOwnSpace(context.services, spaceId);
    if (how.wait) requireHearing(context.services, spaceId, "wait");
  }
  const isChecked = !context.replayed && words.includes("@");
  const absent = isChecked ? absentIn(context.services.spaces.mine(), spaceId, words) : [];
  if (absent.length > 0) {
    throw new ColloquyError(
      "not_a_member",
      `${absent.map((name) => JSON.stringify(name)).join(", ")} would not read it: no member of the active space; enter one of theirs, or name them without the @`,
    );
  }
  // A replay asks those whom the question may have reached, even if they have left since.
  const asked = context.awaited();
  const awaits = asked.length === 0 && how.wait ? await awaitedBy(context, spaceId, words, how.replyTo) : asked;
  const replyTo = how.replyTo === undefined ? {} : { replyTo: how.replyTo };
  const message = await context.say(spaceId, words, { ...replyTo, awaits });
  const value = { success: true, messageId: message.id, status: "delivered" };
  if (awaits.length === 0) return { value };
  return { value: { ...value, waitingFor: awaits.map(({ name }) => name) }, waits: true };
};

type Said = { text: string; wait?: boolean; replyToMessageId?: string };

/** The people of a confidential space who let its words out. What they let out is said as it stands, and waits for nobody. */
const release: Consent<Said> = {
  approval: async ({ wait }, { services, activeSpaceId }) => {
    const approval = activeSpaceId === null ? undefined : releaseFrom(services, activeSpaceId);
    if (approval && activeSpaceId !== null && !services.spaces.isMember(activeSpaceId)) throw notMember();
    if (!approval?.required || !wait) return approval;
    throw new ColloquyError("forbidden", "wait: you do not hear answers to what is let out of a confidential space");
  },
  carryOut: async ({ text: words, replyToMessageId: replyTo }, call) => {
    const { services, callId, signal, activeSpaceId, approvedBy = [], release, askedAt: shownAt } = call;
    const { env, ids, clock } = services;
    const spaceId = activeSpaceId ?? "";
    // The space's release may have changed since people were asked.
    requireReleased(services, spaceId, approvedBy);
    const { id: agentId, workspaceId } = services.identity.get();
    const messageId = ids.deriveOwned("msg", spaceId, callId);
    // Nothing of it tells of the run: a chain begins with who let it out.
    const root = { id: messageId, kind: "person", by: approvedBy[0] } as const;
    const shown = { shownAsOpen: release?.confidential === false, shownReaders: release?.readers, shownAt };
    const letOutBy = release?.confidential ? services.identity.mindId() : undefined;
    const own = { workspaceId, agentId, runId: "", messageId, letOut: true, letOutBy } as const;
    const said = { ...own, ...shown, text: words, replyTo, root };
    const append = () => env.SPACE.getByName(spaceId).append({ ...said, until: clock.now() + spaceAnswerMs });
    const { id } = unwrap(await asUnknownOutcome(callWithRetry(append, signal)));
    return { success: true, messageId: id, status: "delivered", release };
  },
};

/** A message shows in the history by itself. */
const says = { ...acts, speaks: true, showsInHistory: false, consent: release } as const;

export const spaceTools = [
  defineTool({
    name: "enter_space",
    description: "Set the active space. All that you say next goes there. Returns its recent messages.",
    input: z.strictObject({
      spaceId: z.string().describe("Id of the space to enter. Must be one of YOUR SPACES."),
      limit: Limit.describe("How many recent messages to load."),
    }),
    ...looks,
    movesSpace: true,
    async execute({ spaceId, limit }, context) {
      const { told, window, ...page } = await pageOf(context, spaceId, { limit, offset: 0 });
      const value = { success: true, spaceId, spaceName: window.space.name, ...page, totalMessages: window.total };
      return { ...told, value, activeSpaceId: spaceId };
    },
  }),
  defineTool({
    name: "leave_space",
    description: "Leave the active space: no space is active afterwards. You stay a member.",
    input: z.strictObject({}),
    ...looks,
    showsInHistory: true,
    only: "consciousness",
    movesSpace: true,
    execute: () => ({ value: { success: true }, activeSpaceId: null }),
  }),
  defineTool({
    ...says,
    name: "send_message",
    description: "Post a message to the active space.",
    input: z.strictObject({ text }),
    only: "simple",
    execute: (input, context) => say(context, input.text, { wait: false }),
  }),
  defineTool({
    ...says,
    name: "send_message",
    description: "Post a message to the active space, and wait for answers if you say so.",
    input: z.strictObject({ text, wait }),
    only: "threaded",
    execute: (input, context) => say(context, input.text, { wait: input.wait }),
  }),
  defineTool({
    ...says,
    name: "send_reply",
    description: "Answer one message of the active space, and wait for answers to yours if you say so.",
    input: z.strictObject({ replyToMessageId: messageId.describe("Id of the message that you answer."), text, wait }),
    only: "threaded",
    execute: (input, context) => say(context, input.text, { replyTo: input.replyToMessageId, wait: input.wait }),
  }),
  defineTool({
    name: "read_messages",
    description: "Read a space's messages, paging back from the newest. A page is oldest first.",
    input: z.strictObject({
      spaceId: z.string().optional().describe("One of YOUR SPACES; left out, the active one."),
      limit: Limit,
      offset: z.int().min(0).max(1_000_000).default(0).describe("How many of the newest to leave out."),
    }),
    ...looks,
    async execute({ spaceId, limit, offset }, context) {
      const wanted = spaceId ?? context.activeSpaceId;
      if (wanted === null) throw new ColloquyError("no_active_space", "name a spaceId, or call enter_space first");
      const { told, window, history, ...rest } = await pageOf(context, wanted, { limit, offset });
      return { ...told, value: { messages: history, ...rest, total: window.total } };
    },
  }),
];
