import { isoTime } from "../../../shared/clock.ts";
import { activitySection } from "../../context/activity.ts";
import type { ShownBlock } from "../../context/blocks.ts";
import type { Telling } from "../../context/consciousness/compose-consciousness.ts";
import { renderStateChanges, toldBlocks } from "../../context/consciousness/state.ts";
import { isMessage, type JournalRow } from "../../journal.ts";
import type { Dropped, InboxData, ToldState } from "../../records.ts";
import { composingOf, windowOf } from "../composing.ts";
import { gatherActivity } from "../gather-activity.ts";
import { shownSharedBlocks } from "../known-blocks.ts";
import type { LiveRun, RunServices } from "../run-services.ts";

/**
 * Tells a cycle, as it begins, which blocks other agents share with it and what they did lately.
 *
 * Invariants
 * 1. Only changes since the last cycle are told. Nothing that was told before is rewritten.
 * 2. Each section is a row of the journal behind the inbox message, so that a replay reads the same (R3).
 * 3. The others are asked once a run.
 */
type Section = Telling["section"];

/** The keys of these sections in a run's told state. */
const keys: Record<Section, string> = { shared_blocks: "SHARED BLOCKS", activity: "ACTIVITY" };
const sections = ["shared_blocks", "activity"] as const;

/** `text`: null if nothing changed. `told`: the state that the next cycle need not be told again. */
type News = {
  section: Section;
  text: string | null;
  told: Record<string, string>;
  dropped: Dropped[];
  blocks: ShownBlock[];
};

/** The state that the model was told before, and the cycle's events. Read only when needed. */
type Before = { told: () => ToldState | null; events: () => InboxData[] };

const sharedBlocks = async (services: RunServices, before: Before, signal: AbortSignal): Promise<News | null> => {
  const section = "shared_blocks";
  const known = before.told()?.[keys[section]] ?? {};
  if (services.sharedBlocks.list().length === 0 && Object.keys(known).length === 0) return null;
  const { config } = composingOf(services);
  const { shown: blocks, dropped } = await shownSharedBlocks(services, config, before.events(), signal);
  const told = toldBlocks(blocks);
  return { section, text: renderStateChanges({ BLOCKS: known }, { BLOCKS: told }, blocks), told, dropped, blocks };
};

const activity = async (services: RunServices, before: Before, signal: AbortSignal): Promise<News | null> => {
  if (!services.identity.get().config.context.activity) return null;
  const gathered = await gatherActivity(services, before.told()?.[keys.activity] ?? {}, signal);
  const { section, dropped } = activitySection(gathered.activity, isoTime(services.clock.now()));
  return { section: "activity", text: section.text || null, told: gathered.upTo, dropped, blocks: [] };
};

/** The news of all sections that are not `done`. Nobody is asked if nothing is shared and activity is off. */
export const newsOfOthers = async (
  services: RunServices,
  before: Before,
  signal: AbortSignal,
  done: Section[] = [],
): Promise<News[]> => {
  const ways = { shared_blocks: sharedBlocks, activity };
  const left = sections.filter((section) => !done.includes(section));
  const news = await Promise.all(left.map((section) => ways[section](services, before, signal)));
  signal.throwIfAborted();
  return news.filter((each) => each !== null);
};

export const tellingsOf = (news: News[]): Telling[] =>
  news.flatMap(({ section, text }) => (text === null ? [] : [{ section, message: { role: "user", content: text } }]));

export const tellPeerUpdates = async ({ services, run, signal }: LiveRun): Promise<void> => {
  const done = sections.filter((section) => run.told[keys[section]] !== undefined);
  const before = {
    told: () => services.windows.toldBefore(windowOf(services, run), run.ordinal),
    events: () => services.inbox.rows(run.events).map(({ data }) => data),
  };
  const news = await newsOfOthers(services, before, signal, done);
  if (news.length === 0) return;
  services.transaction(() => {
    for (const { section, text, told, dropped } of news) {
      const meta = { kind: "told", section, ...(dropped.length === 0 ? {} : { dropped }) } as const;
      if (text !== null) services.journal.tell(run.ordinal, 0, text, meta);
      run.told = { ...run.told, [keys[section]]: told };
    }
    services.runs.update(run.ordinal, { told: run.told });
  });
};

/** The news that a cycle was told, read from the rows of its run. */
export const tellingsIn = (rows: JournalRow[]): Telling[] =>
  rows.flatMap((row) =>
    row.meta?.kind === "told" && isMessage(row) ? [{ section: row.meta.section, message: row.content }] : [],
  );
