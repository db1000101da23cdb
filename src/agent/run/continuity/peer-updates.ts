import { isoTime } from "../../../shared/clock.ts";
import { activitySection } from "../../context/activity.ts";
import type { ShownBlock } from "../../context/blocks.ts";
import type { Telling } from "../../context/consciousness/compose-consciousness.ts";
import { renderStateChanges, toldBlocks } from "../../context/consciousness/state.ts";
import { isMessage, type JournalRow } from "../../journal.ts";
import type { Dropped, InboxData, ToldState } from "../../records.ts";
import type { RunRow } from "../../runs.ts";
import { composingOf } from "../composing.ts";
import { gatherActivity } from "../gather-activity.ts";
import { shownSharedBlocks } from "../known-blocks.ts";
import type { RunServices } from "../run-services.ts";

/**
 * Tells a cycle, as it begins, which blocks other agents share with it and what they did lately.
 *
 * Invariants
 * 1. Only changes since the last cycle are told. Nothing that was told before is rewritten.
 * 2. Each section is a row of the journal behind the inbox message, so that a replay reads the same (R3).
 * 3. The others are asked once a run.
 */
type Told = Telling["section"];

/** The keys of these sections in a run's told state. */
const keys: Record<Told, string> = { shared_blocks: "SHARED BLOCKS", activity: "ACTIVITY" };

const sections = ["shared_blocks", "activity"] as const;

/** `text`: null if nothing changed. `told`: the state that the next cycle need not be told again. */
type News = {
  section: Told;
  text: string | null;
  told: Record<string, string>;
  dropped: Dropped[];
  blocks?: ShownBlock[];
};

/** The state that the model was told before, and the cycle's events. Read only when needed. */
type Before = { told: () => ToldState | null; events: () => InboxData[] };

const sharedBlocks = async (
  services: RunServices,
  { told, events }: Before,
  signal: AbortSignal,
): Promise<News | null> => {
  const before = told()?.[keys.shared_blocks] ?? {};
  if (services.sharedBlocks.list().length === 0 && Object.keys(before).length === 0) return null;
  const { shown, dropped } = await shownSharedBlocks(services, composingOf(services).config, events(), signal);
  const now = toldBlocks(shown);
  return {
    section: "shared_blocks",
    text: renderStateChanges({ BLOCKS: before }, { BLOCKS: now }, shown),
    told: now,
    dropped,
    blocks: shown,
  };
};

const activity = async (services: RunServices, { told }: Before, signal: AbortSignal): Promise<News | null> => {
  if (!services.identity.get().config.context.activity) return null;
  const gathered = await gatherActivity(services, told()?.[keys.activity] ?? {}, signal);
  const { section, dropped } = activitySection(gathered.activity, isoTime(services.clock.now()));
  return { section: "activity", text: section.text === "" ? null : section.text, told: gathered.upTo, dropped };
};

/** The news of all sections that are not `done`. Nobody is asked if nothing is shared and activity is off. */
const newsOfOthers = async (
  services: RunServices,
  before: Before,
  signal: AbortSignal,
  done: Told[] = [],
): Promise<News[]> => {
  const ways = { shared_blocks: sharedBlocks, activity };
  const left = sections.filter((section) => !done.includes(section));
  const news = await Promise.all(left.map((section) => ways[section](services, before, signal)));
  signal.throwIfAborted();
  return news.filter((each) => each !== null);
};

/** The news that the next cycle would be told, and the blocks that others share with it. */
export const tellingsTo = async (
  services: RunServices,
  before: Before,
  signal: AbortSignal,
): Promise<{ tellings: Telling[]; dropped: Dropped[]; blocks: ShownBlock[] }> => {
  const news = await newsOfOthers(services, before, signal);
  return {
    tellings: news.flatMap(({ section, text }) =>
      text === null ? [] : [{ section, message: { role: "user", content: text } }],
    ),
    dropped: news.flatMap(({ dropped }) => dropped),
    blocks: news.flatMap(({ blocks = [] }) => blocks),
  };
};

/** Tells a cycle that has just begun. */
export const tellPeerUpdates = async (services: RunServices, run: RunRow, signal: AbortSignal): Promise<void> => {
  const done = sections.filter((section) => run.told[keys[section]] !== undefined);
  const window = services.windows.window(run.windowId);
  const before = {
    told: () => (window ? services.windows.toldBefore(window, run.ordinal) : null),
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
