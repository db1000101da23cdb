import type { Message } from "../../protocol/message.ts";
import { activityMemoryMs, maxActivityLines, maxActivityTokens } from "../bounds.ts";
import type { Dropped } from "../records.ts";
import { quote } from "./quote.ts";
import { type Cut, keepFitting, lineTokens, sectionOf } from "./sections.ts";

/** A deed of another agent in a space, read from its message there. `seq` is the message's place in the log. */
export type Deed = {
  spaceId: string;
  spaceName: string;
  seq: number;
  /** ISO 8601. */
  at: string;
  agentName: string;
  did: "answered" | "asked" | "wrote" | { used: string };
};

/** Recent deeds of other agents in an agent's spaces, oldest first, and the spaces that could not be read. */
export type Activity = { deeds: Deed[]; dropped: Dropped[] };

/** A message counts as an answer to the one before for so long. */
const answerMs = 30 * 60_000;

const follows = (message: Message, before: Message | undefined): boolean =>
  before !== undefined && Date.parse(message.createdAt) - Date.parse(before.createdAt) <= answerMs;

const deedOf = (message: Message, before: Message | undefined): Deed["did"] => {
  const { toolCall, expectsReply, replyTo, origin } = message;
  if (toolCall) return toolCall.status === "requires_action" ? "asked" : { used: toolCall.name };
  if (expectsReply) return "asked";
  const isAnswer = replyTo !== undefined || (origin === undefined && follows(message, before));
  return isAnswer ? "answered" : "wrote";
};

/** The deeds of agents other than `agentId`, from the messages of one space, oldest first. */
export const deedsIn = (space: { id: string; name: string }, messages: Message[], agentId: string): Deed[] =>
  messages.flatMap((message, index) => {
    const { sender, seq, createdAt: at } = message;
    if (sender.type !== "agent" || sender.id === agentId) return [];
    const before = messages.slice(0, index).findLast((earlier) => earlier.sender.id !== sender.id);
    return [
      { spaceId: space.id, spaceName: space.name, seq, at, agentName: sender.name, did: deedOf(message, before) },
    ];
  });

const time = /T(\d\d:\d\d)/;

/** `[15:02] "Designer" answered in "Project Alpha"`: names are quoted, so that none can pass for more (S2). */
const deedLine = ({ at, agentName, did, spaceName }: Deed): string => {
  const what = typeof did === "string" ? did : `used ${quote(did.used)}`;
  return `  - [${time.exec(at)?.[1] ?? "--:--"}] ${quote(agentName)} ${what} in ${quote(spaceName)}`;
};

const inOrder = (one: Deed, other: Deed): number =>
  one.at.localeCompare(other.at) || one.spaceId.localeCompare(other.spaceId) || one.seq - other.seq;

/** The deeds of the last day, so that hours and minutes are enough. One repeated in the same minute is listed once. */
const newestLines = (deeds: Deed[], now: string): string[] => {
  const since = Date.parse(now) - activityMemoryMs;
  const recent = deeds.filter(({ at }) => Date.parse(at) > since).sort(inOrder);
  return [...new Set(recent.map(deedLine).reverse())].slice(0, maxActivityLines).reverse();
};

const heading = "ACTIVITY (other agents in your spaces, UTC):";

/** The newest deeds that fit `room` tokens, newest last. Empty if there are none. */
export const activitySection = ({ deeds, dropped }: Activity, now: string, room = maxActivityTokens): Cut => {
  const lines = newestLines(deeds, now);
  const forLines = Math.min(room, maxActivityTokens) - lineTokens(heading);
  const { kept, left } = keepFitting(lines, forLines, lineTokens, (_, index) => -index);
  const shown = lines.length === 0 ? [] : [heading, ...kept];
  const cut =
    left.length === 0
      ? []
      : [{ name: "activity", reason: `${left.length} earlier lines do not fit context.maxTokens` }];
  return { section: sectionOf("activity", shown), dropped: [...dropped, ...cut] };
};
