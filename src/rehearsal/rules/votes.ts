import * as z from "zod";
import { answer, type Doing, rule, ruleForPeople, type Turn } from "../turn.ts";

const HistoryEntry = z.object({
  id: z.string().optional(),
  senderName: z.string(),
  senderType: z.string().optional(),
  content: z.string(),
});
const Page = z.object({ messages: z.array(z.unknown()), total: z.number().optional() });

const pageSize = 50;
const mostPages = 4;

/** The option that a message votes for, in capitals: "Option A", "I vote for b", "A". */
const voteIn = (text: string): string | undefined => {
  const plain = text.trim();
  if (plain.endsWith("?") || /\bcount\b/i.test(plain)) return undefined;
  const option =
    /\bvot(?:e|es|ed|ing)\b(?:\s+(?:is|goes|for|to)\b)*[\s:]+(?:option\s+)?["“]?([a-z0-9]{1,20})\b/i.exec(plain)?.[1] ??
    /^(?:option\s+)([a-z0-9]{1,20})\b[^a-z0-9]*$/i.exec(plain)?.[1] ??
    /^([a-z]|\d{1,2})[.!]?$/i.exec(plain)?.[1];
  return option?.toUpperCase();
};

/** Each person's last vote, as one line: the options by votes, then by name. */
const tally = (votes: Map<string, string>): string => {
  const voters = Map.groupBy(votes.keys(), (voter) => votes.get(voter) ?? "");
  const ranked = [...voters].toSorted(
    ([left, leftVoters], [right, rightVoters]) => rightVoters.length - leftVoters.length || left.localeCompare(right),
  );
  const [first, second] = ranked;
  if (!first) return "I see no votes here.";
  const list = ranked.map(([option, names]) => `${option}: ${names.length} (${names.join(", ")})`).join("; ");
  const tied = second !== undefined && second[1].length === first[1].length;
  return `Votes: ${list}. ${tied ? "It is a tie." : `${first[0]} leads.`}`;
};

function* countVotes(turn: Turn): Doing {
  const pages: unknown[][] = [];
  for (let page = 0; page < mostPages; page += 1) {
    const result = yield {
      toolName: "read_messages",
      input: { spaceId: turn.event.spaceId, limit: pageSize, offset: page * pageSize },
    };
    const parsed = Page.safeParse(result.ok ? result.value : undefined);
    if (!parsed.success) break;
    pages.unshift(parsed.data.messages);
    if ((parsed.data.total ?? 0) <= (page + 1) * pageSize) break;
  }
  if (pages.length === 0) return yield* answer(turn, "I could not read the votes.", "could not count the votes");
  const votes = new Map<string, string>();
  for (const raw of pages.flat()) {
    const entry = HistoryEntry.safeParse(raw);
    if (!entry.success || entry.data.senderType === "agent" || entry.data.senderName === turn.view.name) continue;
    const option = voteIn(entry.data.content);
    if (option !== undefined) votes.set(entry.data.senderName, option);
  }
  return yield* answer(turn, tally(votes), "counted the votes");
}

export const votes = rule(/\b(?:count|tally|sum up|add up)\b.{0,20}\bvotes?\b|\bwho won the vote\b/i, countVotes);

export const ownVote = ruleForPeople(/^/, (turn) => {
  const option = voteIn(turn.request);
  return option === undefined
    ? undefined
    : [`Noted: ${turn.event.senderName} votes ${option}.`, `noted a vote for ${option}`];
});
