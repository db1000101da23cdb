import type { Dropped } from "../../protocol/exported-history.ts";
import type { Message } from "../../protocol/message.ts";
import { activityMemoryMs, maxActivityLines, maxActivityTokens } from "../bounds.ts";
import { type Cut, listSection } from "./sections.ts";
import { quote } from "./wording.ts";

/** A deed of another agent, read from its message. */
export type Deed = {
  spaceId: string;
  /** The message's place in the log. */
  seq: number;
  /** ISO 8601. */
  at: string;
  /** `- [15:02] "Designer" answered in "Project Alpha"`: names are quoted, so that none can pass for more (S2). */
  line: string;
};

/**
 * Recent deeds of other agents in an agent's spaces, oldest first, and the spaces that could not be read. `entries`: how
 * many lines of it are shown, `maxActivityLines` if left out.
 */
export type Activity = { deeds: Deed[]; dropped: Dropped[]; entries?: number };

/** A message counts as an answer to the one before for so long. */
const answerMs = 30 * 60_000;

const follows = (message: Message, before: Message | undefined): boolean =>
  before !== undefined && Date.parse(message.createdAt) - Date.parse(before.createdAt) <= answerMs;

const deedOf = (message: Message, before: Message | undefined): string => {
  const { toolCall, expectsReply, replyTo, origin } = message;
  if (toolCall && toolCall.status !== "requires_action") return `used ${quote(toolCall.name)}`;
  if (toolCall || expectsReply) return "asked";
  const isAnswer = replyTo !== undefined || (origin === undefined && follows(message, before));
  return isAnswer ? "answered" : "wrote";
};

/** The deeds of agents other than `agentId`, from the messages of one space, oldest first. */
export const deedsIn = (space: { id: string; name: string }, messages: Message[], agentId: string): Deed[] =>
  messages.flatMap((message, index) => {
    const { sender, seq, createdAt: at } = message;
    if (sender.type !== "agent" || sender.id === agentId) return [];
    const before = messages.slice(0, index).findLast((earlier) => earlier.sender.id !== sender.id);
    const time = /T(\d\d:\d\d)/.exec(at)?.[1] ?? "--:--";
    const line = `  - [${time}] ${quote(sender.name)} ${deedOf(message, before)} in ${quote(space.name)}`;
    return [{ spaceId: space.id, seq, at, line }];
  });

const inOrder = (one: Deed, other: Deed): number =>
  one.at.localeCompare(other.at) || one.spaceId.localeCompare(other.spaceId) || one.seq - other.seq;

/**
 * The newest deeds that fit `room` tokens, newest last. Empty if there are none. They are of the last day, so that hours
 * and minutes are enough. One repeated in the same minute is listed once.
 */
export const activitySection = (
  { deeds, dropped, entries = maxActivityLines }: Activity,
  now: string,
  room?: number,
): Cut => {
  const most = maxActivityTokens * Math.max(1, entries / maxActivityLines);
  const since = Date.parse(now) - activityMemoryMs;
  const recent = deeds.filter(({ at }) => Date.parse(at) > since).sort(inOrder);
  const newest = new Set(recent.map(({ line }) => line).reverse());
  const lines = [...newest].slice(0, entries).reverse();
  const { section, dropped: cut } = listSection(Math.min(room ?? most, most), {
    ...{ name: "activity", heading: "ACTIVITY (other agents in your spaces, UTC):", lines },
    reason: (left) => `${left} earlier lines do not fit context.maxTokens`,
  });
  return { section, dropped: [...dropped, ...cut] };
};
