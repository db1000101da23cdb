import type { Message } from "../../protocol/message.ts";
import { log } from "../../shared/log.ts";
import { settledWithin } from "../../shared/timeouts.ts";
import { activityWaitMs, maxActivityMessages, maxActivitySpaces, maxAskedAtOnce } from "../bounds.ts";
import { spaceWindow } from "../call-with-retry.ts";
import { type Activity, deedsIn } from "../context/activity.ts";
import type { Dropped } from "../records.ts";
import type { RunServices } from "./run-services.ts";

/** Up to which `seq` of each space's log the agent was told of others' activity, by the space's id. */
export type ToldUpTo = Record<string, string>;

export type GatheredActivity = { activity: Activity; upTo: ToldUpTo };

type Read = { name: string; messages: Message[] };

/** `count` of spaces, in words. */
const spaces = (count: number): string => `${count} ${count === 1 ? "space" : "spaces"}`;

const droppedOf = (unasked: number, silent: number): Dropped[] => [
  ...(unasked === 0
    ? []
    : [{ name: "activity", reason: `${spaces(unasked)} beyond maxActivitySpaces (${maxActivitySpaces})` }]),
  ...(silent === 0 ? [] : [{ name: "activity", reason: `${spaces(silent)} did not answer in time` }]),
];

/**
 * The recent activity of other agents, from the newest messages of the agent's spaces. Each space is asked once, and
 * checks that the agent is in it (S1). Spaces without news since `told` are not asked, nor those whose messages are
 * `known`. All share `activityWaitMs`; a space that does not answer in time is left out.
 */
export const gatherActivity = async (
  services: RunServices,
  told: ToldUpTo,
  signal: AbortSignal,
  known: ReadonlyMap<string, Read> = new Map(),
): Promise<GatheredActivity> => {
  const { id: agentId } = services.identity.get();
  const newsOf = ({ id, cursor }: { id: string; cursor: number }): number => cursor - Number(told[id] ?? 0);
  const withNews = services.spaces
    .followed()
    .filter((space) => newsOf(space) > 0)
    .sort((one, other) => newsOf(other) - newsOf(one));
  const wanted = withNews.slice(0, maxActivitySpaces);
  const read = new Map(wanted.flatMap(({ id }) => [known.get(id)].flatMap((page) => (page ? [[id, page]] : []))));
  const asked = wanted.filter(({ id }) => !read.has(id));
  const closed = new Set<string>();
  const page = { limit: maxActivityMessages, offset: 0 };
  let isLate = false;
  const waiting = [...asked];
  const askNext = async (): Promise<void> => {
    for (let space = waiting.shift(); space && !isLate; space = waiting.shift()) {
      try {
        const answer = await spaceWindow(services, space.id, page);
        if (answer.ok) read.set(space.id, { name: answer.value.space.name, messages: answer.value.messages });
        else closed.add(space.id);
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        log.warn("activity.space-unreachable", { agentId, spaceId: space.id, reason });
      }
    }
  };
  await settledWithin(activityWaitMs, Promise.all(Array.from({ length: maxAskedAtOnce }, askNext)));
  isLate = true;
  signal.throwIfAborted();
  // The agent may have left a space meanwhile.
  const mine = wanted.filter(({ id }) => services.spaces.isMember(id));
  const silent = mine.filter(({ id }) => !read.has(id) && !closed.has(id)).length;
  const heard = mine.flatMap(({ id, cursor }) => {
    const page = read.get(id);
    return page ? [{ id, cursor, ...page }] : [];
  });
  const upTo = heard.map(({ id, cursor, messages }) => [id, String(Math.max(cursor, messages.at(-1)?.seq ?? 0))]);
  const deeds = heard.flatMap(({ id, name, messages }) =>
    deedsIn({ id, name }, messages, agentId).filter(({ seq }) => seq > Number(told[id] ?? 0)),
  );
  const before = Object.entries(told).filter(([id]) => services.spaces.isMember(id));
  return {
    activity: { deeds, dropped: droppedOf(withNews.length - wanted.length, silent) },
    upTo: Object.fromEntries([...before, ...upTo]),
  };
};
