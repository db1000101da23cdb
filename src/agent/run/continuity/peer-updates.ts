import type { Dropped, ToldSection } from "../../../protocol/exported-history.ts";
import type { Message } from "../../../protocol/message.ts";
import { isoTime } from "../../../shared/clock.ts";
import { log } from "../../../shared/log.ts";
import { settledWithin, workOff } from "../../../shared/timeouts.ts";
import {
  activityWaitMs,
  maxActivityLines,
  maxActivityMessages,
  maxActivitySpaces,
  maxAskedAtOnce,
} from "../../bounds.ts";
import { spaceWindow } from "../../call-with-retry.ts";
import { type Activity, activitySection, deedsIn } from "../../context/activity.ts";
import { type ShownBlock, tokensOf } from "../../context/blocks.ts";
import { renderStateChanges, shareNews, toldBlocks, toldShares } from "../../context/consciousness/state.ts";
import type { InboxData, ToldState } from "../../records.ts";
import { knownShares, othersBlocks, ownBlocks, shownBlocks, windowOf } from "../composing.ts";
import type { LiveRun, RunServices } from "../run-services.ts";

/**
 * What a run reads of other agents: the blocks that they share with it, and what they did lately. A cycle is told both
 * as it begins.
 *
 * Invariants
 * 1. Only changes since the last cycle are told. Nothing that was told before is rewritten.
 * 2. Each section is a row of the journal behind the inbox message, so that a replay reads the same (R3).
 * 3. The others are asked once a run.
 */
type Read = { id: string; name: string; messages: Message[] };

const untold = (spaces: number, why: string): Dropped[] =>
  spaces === 0 ? [] : [{ name: "activity", reason: `${spaces} ${spaces === 1 ? "space" : "spaces"} ${why}` }];

/**
 * The recent activity of other agents, from the newest messages of the agent's spaces. Each space is asked once, and
 * checks that the agent is in it (S1). `told` says up to which place of each space's log the agent was told. Spaces
 * without news since are not asked, nor those of which enough messages are `known`. All share `activityWaitMs`; a space
 * that does not answer in time is left out.
 */
export const gatherActivity = async (
  services: RunServices,
  told: Record<string, string>,
  signal: AbortSignal,
  known: (Read & { total: number })[] = [],
): Promise<{ activity: Activity; upTo: Record<string, string> }> => {
  const { id: agentId, config } = services.identity.get();
  const { activity: asked } = config.context;
  const entries = typeof asked === "object" ? asked.entries : maxActivityLines;
  const newsOf = ({ id, cursor }: { id: string; cursor: number }): number => cursor - Number(told[id] ?? 0);
  const withNews = services.spaces
    .followed()
    .filter((space) => newsOf(space) > 0)
    .sort((one, other) => newsOf(other) - newsOf(one));
  const wanted = withNews.slice(0, maxActivitySpaces);
  const page = { limit: Math.max(maxActivityMessages, entries), offset: 0 };
  const enough = known.filter(({ messages, total }) => messages.length >= Math.min(page.limit, total));
  /** Null where the space refused. */
  const read = new Map<string, Read | null>(enough.map((each) => [each.id, each]));
  const waiting = wanted.filter(({ id }) => !read.has(id));
  const asking = workOff(waiting, maxAskedAtOnce, async ({ id: spaceId }) => {
    try {
      const answer = await spaceWindow(services, spaceId, page);
      const window = answer.ok ? answer.value : null;
      read.set(spaceId, window && { id: spaceId, name: window.space.name, messages: window.messages });
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      log.warn("activity.space-unreachable", { agentId, spaceId, reason });
    }
  });
  await settledWithin(activityWaitMs, asking);
  // It is too late to ask the others.
  waiting.length = 0;
  signal.throwIfAborted();
  // The agent may have left a space meanwhile.
  const mine = wanted.filter(({ id }) => services.spaces.isMember(id));
  const silent = mine.filter(({ id }) => !read.has(id)).length;
  const heard = mine.flatMap(({ id, cursor }) => {
    const page = read.get(id);
    return page ? [{ ...page, cursor }] : [];
  });
  const upTo = heard.map(({ id, cursor, messages }) => [id, String(Math.max(cursor, messages.at(-1)?.seq ?? 0))]);
  const deeds = heard.flatMap(({ id, name, messages }) =>
    deedsIn({ id, name }, messages, agentId).filter(({ seq }) => seq > Number(told[id] ?? 0)),
  );
  const dropped = [
    ...untold(withNews.length - wanted.length, `beyond maxActivitySpaces (${maxActivitySpaces})`),
    ...untold(silent, "did not answer in time"),
  ];
  const before = Object.entries(told).filter(([id]) => services.spaces.isMember(id));
  return { activity: { deeds, dropped, entries }, upTo: Object.fromEntries([...before, ...upTo]) };
};

/** The keys of the sections in a run's told state. */
const keys = { shared_blocks: "SHARED BLOCKS", activity: "ACTIVITY" } as const;
const sections = ["shared_blocks", "activity"] as const;
/** Told with the shared blocks: which there are, whether or not they are shown. */
const sharesKey = "SHARES";
/** Where the cycles are gone that were told of others' blocks: the next cycle is told of all of them again. */
export const sharesUntold: ToldState = { [keys.shared_blocks]: {}, [sharesKey]: {} };

/** `text`: null if nothing changed. `told`: the state that the next cycle need not be told again. */
type News = {
  section: ToldSection;
  text: string | null;
  told: ToldState;
  dropped: Dropped[];
  blocks: ShownBlock[];
};

/** `told`: what the model was told before. `events`: the cycle's, read only when needed. */
type Telling = { services: RunServices; told: ToldState | null; events: () => InboxData[]; signal: AbortSignal };

const newsOf = {
  shared_blocks: async ({ services, told: before, events, signal }: Telling): Promise<News | null> => {
    const known = before?.[keys.shared_blocks] ?? {};
    const heard = before?.[sharesKey] ?? {};
    const isNone = [known, heard].every((told) => Object.keys(told).length === 0);
    if (isNone && services.sharedBlocks.list().length === 0) return null;
    const all = events();
    const others = await othersBlocks(services, all, signal);
    const filled = tokensOf(shownBlocks(services, ownBlocks(services), all).shown);
    const { shown: blocks, dropped } = shownBlocks(services, others, all, filled);
    const told = toldBlocks(blocks);
    // The owners have been asked: what they do not share any more is gone from the list.
    const shares = knownShares(services);
    const lines = shareNews(heard, shares, { inInput: told, inLast: known });
    const text = renderStateChanges({ BLOCKS: known }, { BLOCKS: told }, blocks, lines);
    const news = { section: "shared_blocks", text, dropped, blocks } as const;
    return { ...news, told: { [keys.shared_blocks]: told, [sharesKey]: toldShares(shares) } };
  },
  activity: async ({ services, told: before, signal }: Telling): Promise<News | null> => {
    if (!services.identity.get().config.context.activity) return null;
    const { activity, upTo } = await gatherActivity(services, before?.[keys.activity] ?? {}, signal);
    const { section, dropped } = activitySection(activity, isoTime(services.clock.now()));
    const told = { [keys.activity]: upTo };
    return { section: "activity", text: section.text || null, told, dropped, blocks: [] };
  },
};

/** The news of all sections that are not `done`. Nobody is asked if nothing is shared and activity is off. */
export const newsOfOthers = async (telling: Telling, done: ToldSection[] = []): Promise<News[]> => {
  const left = sections.filter((section) => !done.includes(section));
  const news = await Promise.all(left.map((section) => newsOf[section](telling)));
  telling.signal.throwIfAborted();
  return news.filter((each) => each !== null);
};

export const tellPeerUpdates = async ({ services, run, signal }: LiveRun): Promise<void> => {
  const done = sections.filter((section) => run.told[keys[section]] !== undefined);
  const told = services.windows.toldBefore(windowOf(services, run), run.ordinal);
  const events = (): InboxData[] => services.inbox.rows(run.events).map(({ data }) => data);
  const news = await newsOfOthers({ services, told, events, signal }, done);
  if (news.length === 0) return;
  services.transaction(() => {
    for (const { section, text, told, dropped } of news) {
      const meta = { kind: "told", section, ...(dropped.length === 0 ? {} : { dropped }) } as const;
      if (text !== null) services.journal.tell(run.ordinal, 0, text, meta);
      run.told = { ...run.told, ...told };
    }
    run.told = services.redactions.cleanTold(run.told);
    services.runs.update(run.ordinal, { told: run.told });
  });
};
