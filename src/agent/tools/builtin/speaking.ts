import { z } from "zod";
import { messageId } from "../../../protocol/ids.ts";
import { MessageText } from "../../../protocol/text.ts";
import { ColloquyError, unwrap } from "../../../shared/errors.ts";
import { acts, defineTool, type ToolContext, type ToolOutput } from "../tool.ts";
import { requireMembership } from "./spaces.ts";

/** The ways to speak. Message ids derive from the call, so saying it again stores nothing twice. */
const text = MessageText.describe("Message text. Markdown is shown as such.");
const wait = z.boolean().default(false).describe("Pause until everyone whom the text mentions as @Name has replied.");

const say = async (
  context: ToolContext,
  words: string,
  how: { replyTo?: string; wait: boolean },
): Promise<ToolOutput> => {
  const spaceId = context.activeSpaceId;
  if (spaceId === null) throw new ColloquyError("no_active_space", "no space is active: call enter_space first");
  if (!context.replayed) requireMembership(context, spaceId);
  const absent = context.replayed ? [] : context.absent(spaceId, words);
  if (absent.length > 0) {
    throw new ColloquyError(
      "not_a_member",
      `${absent.map((name) => JSON.stringify(name)).join(", ")} would not read it: no member of the active space; enter one of theirs, or name them without the @`,
    );
  }
  const awaits = how.wait ? context.mentioned(spaceId, words) : [];
  if (how.wait && awaits.length === 0 && !context.replayed) {
    throw new ColloquyError(
      "tool_input_invalid",
      "wait: the text mentions no other member of the active space; name those whose answers you await as @Name",
    );
  }
  const replyTo = how.replyTo === undefined ? {} : { replyTo: how.replyTo };
  const message = unwrap(await context.say(spaceId, words, { ...replyTo, awaits }));
  const value = { success: true, messageId: message.id, status: "delivered" };
  if (awaits.length === 0) return { value };
  return { value: { ...value, waitingFor: awaits.map(({ name }) => name) }, waits: true };
};

/** A message shows in the history by itself. */
const says = { ...acts, speaks: true, showsInHistory: false } as const;

const sendMessage = defineTool({
  ...says,
  name: "send_message",
  description: "Post a message to the active space.",
  input: z.object({ text }),
  only: "simple",
  execute: (input, context) => say(context, input.text, { wait: false }),
});

const sendThreadedMessage = defineTool({
  ...says,
  name: "send_message",
  description: "Post a message to the active space, and wait for answers if you say so.",
  input: z.object({ text, wait }),
  only: "threaded",
  execute: (input, context) => say(context, input.text, { wait: input.wait }),
});

const sendReply = defineTool({
  ...says,
  name: "send_reply",
  description: "Answer one message of the active space, and wait for answers to yours if you say so.",
  input: z.object({ replyToMessageId: messageId.describe("Id of the message that you answer."), text, wait }),
  only: "threaded",
  execute: (input, context) => say(context, input.text, { replyTo: input.replyToMessageId, wait: input.wait }),
});

export const speakingTools = [sendMessage, sendThreadedMessage, sendReply];
