import { z } from "zod";
import type { Message } from "../../../protocol/message.ts";
import { shownCall } from "../../../shared/call-line.ts";
import { ColloquyError, unwrap } from "../../../shared/errors.ts";
import { maxWindowMessages, maxWindowTokens } from "../../bounds.ts";
import { estimateText } from "../../context/tokens.ts";
import { defineTool, looks, type ToolContext, type ToolOutput } from "../tool.ts";

const Limit = z.int().min(1).max(maxWindowMessages).default(50);

const asEntry = (message: Message, isSeen: SeenBefore) => ({
  id: message.id,
  senderName: message.sender.name,
  senderType: message.sender.type,
  ...(message.toolCall ? { kind: "tool_call", content: shownCall(message.toolCall) } : { content: message.text ?? "" }),
  timestamp: message.createdAt,
  ...(isSeen === undefined ? {} : { seen: isSeen(message) }),
  ...(message.replyTo === undefined ? {} : { replyTo: message.replyTo }),
  ...(message.origin === undefined ? {} : { origin: message.origin }),
});

/** What a result holds beside its messages. */
const frameTokens = 150;

type SeenBefore = ((message: Message) => boolean) | undefined;

/** The newest messages that fit the room there is, oldest first; what was left out is counted, never silent. */
const entries = (messages: Message[], isSeen: SeenBefore, context: ToolContext) => {
  const all = messages.map((message) => asEntry(message, isSeen));
  let room = Math.min(maxWindowTokens, context.roomTokens() - frameTokens);
  let first = all.length;
  while (first > 0) {
    room -= estimateText(JSON.stringify(all[first - 1]));
    if (room < 0 && first < all.length) break;
    first -= 1;
  }
  return {
    history: all.slice(first),
    ...(first === 0 ? {} : { omitted: `${first} older messages did not fit; page back with read_messages` }),
  };
};

export const requireMembership = (context: ToolContext, spaceId: string): void => {
  if (!context.isMember(spaceId)) {
    throw new ColloquyError("not_a_member", "you are not a member of that space; YOUR SPACES lists yours");
  }
};

/**
 * A page of a space's messages. Where the agent marks what it has seen, it has seen these once its run is committed.
 */
const pageOf = async (context: ToolContext, spaceId: string, page: { limit: number; offset: number }) => {
  requireMembership(context, spaceId);
  const { messages, ...window } = unwrap(await context.window(spaceId, page));
  const newest = messages.at(-1);
  const shown: Pick<ToolOutput, "shown"> = context.seenIn && newest ? { shown: [{ spaceId, upTo: newest.seq }] } : {};
  return { ...entries(messages, context.seenIn?.(spaceId), context), shown, window };
};

export const enterSpace = defineTool({
  name: "enter_space",
  description: "Set the active space. All that you say next goes there. Returns its recent messages.",
  input: z.object({
    spaceId: z.string().describe("Id of the space to enter. Must be one of YOUR SPACES."),
    limit: Limit.describe("How many recent messages to load."),
  }),
  ...looks,
  movesSpace: true,
  async execute({ spaceId, limit }, context) {
    const { shown, window, ...page } = await pageOf(context, spaceId, { limit, offset: 0 });
    const value = { success: true, spaceId, spaceName: window.space.name, ...page, totalMessages: window.total };
    return { ...shown, value, activeSpaceId: spaceId };
  },
});

export const leaveSpace = defineTool({
  name: "leave_space",
  description: "Leave the active space: no space is active afterwards. You stay a member.",
  input: z.object({}),
  ...looks,
  showsInHistory: true,
  only: "consciousness",
  movesSpace: true,
  execute: () => ({ value: { success: true }, activeSpaceId: null }),
});

export const readMessages = defineTool({
  name: "read_messages",
  description: "Read a space's messages, paging back from the newest. A page is oldest first.",
  input: z.object({
    spaceId: z.string().optional().describe("One of YOUR SPACES; left out, the active one."),
    limit: Limit,
    offset: z.int().min(0).max(1_000_000).default(0).describe("How many of the newest to leave out."),
  }),
  ...looks,
  async execute({ spaceId, limit, offset }, context) {
    const wanted = spaceId ?? context.activeSpaceId;
    if (wanted === null) throw new ColloquyError("no_active_space", "name a spaceId, or call enter_space first");
    const { shown, window, history, ...rest } = await pageOf(context, wanted, { limit, offset });
    return { ...shown, value: { messages: history, ...rest, total: window.total } };
  },
});
