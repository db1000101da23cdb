import { line, quotedPattern, raw, rest, text, word } from "../../shared/line-form.ts";
import { quote } from "./wording.ts";

/**
 * The grammar of the prompts: the headings and lines that are written here and read back by the rehearsal model. The
 * composers write them by these forms alone. Lines that nobody reads back are not here.
 */
export const headings = {
  identity: "IDENTITY:",
  role: "YOUR ROLE:",
  state: "STATE:",
  stateChanges: "STATE CHANGES:",
  thisRun: "THIS RUN SO FAR:",
  answers: "ANSWERS (no history here shows them):",
  trigger: "TRIGGER:",
} as const;

/** The lists of what an agent has and knows. With a colon each is a heading. */
export const stateSections = {
  spaces: "YOUR SPACES",
  goals: "GOALS",
  memories: "MEMORIES",
  plans: "PLANS",
  blocks: "BLOCKS",
} as const;

export const inboxHeading = line`INBOX (${raw("count", String.raw`\d+ events?`)}, ${raw("now", "[^()]*")}):`;

/** Whether a line begins a section of a prompt, whichever it is. */
export const isHeading = (written: string): boolean => /^[A-Z][A-Z ,]+(?: \(.*\))?:$/.test(written);

export const identityName = line`name: ${text("name")}`;
export const named = line`${text("name")} (id: ${word("id")})`;
export const member = line`${text("name")} (${word("type")})`;
export const sender = line`${text("name")} (${word("type")}, id: ${word("id")})`;

export const activeSpace = line`ACTIVE SPACE: ${named}${rest("why")}`;
export const noActiveSpace = "ACTIVE SPACE: none (call enter_space to enter a space first)";
export const nowLine = line`NOW: ${rest("now")}`;

export const listItem = line`- ${rest("item")}`;
export const emptyList = "(none)";
/** `members` is a list of `member` and of `You`. */
export const spaceItem = line`${named}${raw("mark", String.raw`(?: \[ACTIVE\])?(?: \[CONFIDENTIAL[^\]]*\])?`)} — ${rest("members")}`;
export const goalItem = line`${text("description")} (id: ${word("id")}, ${word("status")}${raw("facts", "[^()]*")})`;
/** In a compartment, what is the open mind's bears the mark. */
export const openMark = " [open]";
const isOpen = raw("mark", String.raw`(?: \[open\])?`);
export const memoryItem = line`${text("key")}: ${text("value")}${isOpen}`;

/** How STATE CHANGES says that an item is gone. */
export const goneItems = {
  spaces: line`(id: ${word("key")}) you are no longer a member`,
  goals: line`(id: ${word("key")})${isOpen} was deleted`,
  memories: line`${text("key")}${isOpen} was cleared`,
  plans: line`(id: ${word("key")})${isOpen} was deleted`,
  blocks: line`${text("key")} is not shown any more`,
};

/** How STATE CHANGES tells of messages that the agent had. */
export const changedMessages = {
  deleted: line`message ${word("messageId")} was deleted`,
  edited: line`message ${word("messageId")} now reads: ${text("text")}`,
};

export const quoted = text("text");
/** A message's content: a quoted text, or the tool call that it shows. */
const content = raw("content", `${quotedPattern}|called .*`);

/** Before a message that a cycle awaited: the question that it answers. */
export const answerTo = line`[answer to ${word("messageId")} ${text("question")}] `;
const answers = raw("answers", String.raw`(?:\[answer to [\w.-]+ ${quotedPattern}\] )*`);
/** At the end of a message whose sender waits for an answer. */
export const expectsReply = " [expects a reply]";

/** Some were asked and did not answer. The run gives a reason why it stopped waiting for each. */
const silent = raw("silent", String.raw`(?:${quotedPattern}|[^"\]])+`);

/** The events that an inbox lists. */
export const inboxEvents = {
  message: line`${answers}[${text("spaceName")}, ${word("spaceId")}] ${text("senderName")} (${word("senderType")}, id: ${word("senderId")}, ${word("messageId")}): ${content} [triggerSource: ${word("triggerSource")}]${rest("notes")}`,
  service: line`[Service ${text("service")}] ${rest("payload")}`,
  plan: line`[Plan ${text("name")}] ${text("instruction")}`,
  unanswered: line`[no answer from ${silent}] [${text("spaceName")}, ${word("spaceId")}] to ${word("messageId")} ${text("question")}`,
  toolResult: line`[Tool result ${raw("tool", `${quotedPattern}|[^"\\]]+`)}, ${word("toolCallId")}] ${rest("result")}`,
};

type OfMessage = "triggerSource" | "space" | "sender" | "message" | "messageId" | "timestamp" | "senderExpectsReply";
type OfPlan = "plan" | "instruction" | "scheduledAt";
type OfService = "service" | "payload";
type OfToolResult = "tool" | "toolCallId" | "result";
export type TriggerField = "type" | "answers" | OfMessage | OfPlan | OfService | OfToolResult;
/** A line under TRIGGER; `field` is a `TriggerField`. */
export const triggerField = line`${word("field")}: ${rest("value")}`;

export const marks = { seen: "[SEEN]", new: "[NEW]", trigger: "← TRIGGER", reply: "← REPLY" };
const marked = raw("marks", String.raw`\[(?:NEW|SEEN)\](?: ← TRIGGER)?(?: ← REPLY)?`);
const dated = line`[${word("id")}] [${raw("time", String.raw`[^\]]*`)}]`;
export const historyFacts = line`${dated} ${marked}`;
/** A message in a space's history; `from` is a `sender` or `You`. */
export const historyMessage = line`${dated} ${raw("from", `You|${quotedPattern} [^"]*`)}: ${content}  ${marked}`;
/** The same message as a turn of a conversation, where somebody else wrote it. */
export const historyTurn = line`[${member}] ${content}  ${historyFacts}`;

/** A call that a run made before its wait. */
export const earlierCall = raw("call", "called .*");

const quotedTexts = new RegExp(quotedPattern, "g");
/** Where a hit or an archival entry comes from: it may name a message that it only quotes. */
const sources = new RegExp(String.raw`"source":\{(?:${quotedPattern}|[^"}])*\}`, "g");

/** A text without the blocks in it, whose lines are their authors' (S2). */
export const withoutBlocks = (input: string): string => input.replaceAll(/^<block:[\s\S]*?^<\/block:/gm, "");

/** Whether a text tells this message itself, in a line of a prompt or a tool's answer: not one that replies to it. */
export const tellsMessage = (input: string, id: string): boolean => {
  if (!input.includes(id)) return false;
  const inLine = [`[${id}] [`, `, ${id}): `, `"" (${id})`, `messageId: ${id}`];
  const inJson = new RegExp(`"messageId":"${id}"|"id":"${id}"(?!,"excerpt")`);
  return withoutBlocks(input)
    .split("\n")
    .filter((written) => written.includes(id))
    .some((written) => {
      const bare = written.replaceAll(quotedTexts, '""');
      return inLine.some((place) => bare.includes(place)) || inJson.test(written.replaceAll(sources, ""));
    });
};

const names = `${quotedPattern}(?:, ${quotedPattern})*`;
/** Why an open mind no longer waits for people of a space. */
export const becameConfidential =
  "the space became confidential, so what is answered there reaches your runs in it alone";
const outcomes = {
  replied: "replied.",
  timedOut: "did not reply in time.",
  gone: "left the space without a reply.",
  apart: "gave no reply: you are no longer in the space.",
  sealed: `gave no reply: ${becameConfidential}.`,
};
const outcome = <Name extends keyof typeof outcomes>(name: Name) => raw(name, `(?:${names} ${outcomes[name]} )?`);
const resumeForm = line`← RESUME: ${outcome("replied")}${outcome("timedOut")}${outcome("gone")}${outcome("apart")}${outcome("sealed")}Continue from here.`;
/** The names in a list of them. */
export const eachName = text("name");

/** The names of those whose answers a run waited for, by outcome. */
export type WaitOutcome = { [Name in keyof typeof outcomes]: string[] };

/** Says why a run goes on after its wait. */
export const resumeLine = {
  write: (of: WaitOutcome): string => {
    const told = (name: keyof WaitOutcome): string =>
      of[name].length === 0 ? "" : `${of[name].map(quote).join(", ")} ${outcomes[name]} `;
    const [replied, timedOut, gone] = [told("replied"), told("timedOut"), told("gone")];
    return resumeForm.write({ replied, timedOut, gone, apart: told("apart"), sealed: told("sealed") });
  },
  read: (written: string): WaitOutcome | undefined => {
    const found = resumeForm.read(written);
    const namesIn = (list: string): string[] => eachName.readAll(list).map(({ name }) => name);
    if (!found) return undefined;
    const [replied, timedOut] = [namesIn(found.replied), namesIn(found.timedOut)];
    return { replied, timedOut, gone: namesIn(found.gone), apart: namesIn(found.apart), sealed: namesIn(found.sealed) };
  },
};

/** How the summariser's instructions begin. */
export const summariserOpening = "You keep the memory of an AI agent";
export const cycleHeading = line`CYCLE ${word("number")}:`;
/** A model message as a summary's source. */
export const toldMessage = line`${word("role")}: ${rest("text")}`;
