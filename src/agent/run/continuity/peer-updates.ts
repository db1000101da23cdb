import { isoTime } from "../../../shared/clock.ts";
import { activitySection } from "../../context/activity.ts";
import type { ShownBlock } from "../../context/blocks.ts";
import type { Telling } from "../../context/consciousness/snapshot.ts";
import { renderStateChanges, toldBlocks } from "../../context/consciousness/state.ts";
import { isMessage, type JournalRow } from "../../journal.ts";
import type { Dropped, InboxData, ToldState } from "../../records.ts";
import type { RunRow } from "../../runs.ts";
import { composingOf } from "../composing.ts";
import { gatherActivity } from "../gather-activity.ts";
import { shownSharedBlocks } from "../known-blocks.ts";
import type { RunServices } from "../run-services.ts";

/**
 * What a living agent is told of others as its cycle begins: the blocks that they share with it, and what they did
 * lately. Only what changed since its last cycle, each in a row of the journal behind its inbox message, so that a
 * replay reads the same (R3) and nothing that it was told before is rewritten. They are asked once a run.
 */
type Told = Telling["section"];

/** Where a run's told state keeps what it was told of others, beside its own. */
const keys: Record<Told, string> = { shared_blocks: "SHARED BLOCKS", activity: "ACTIVITY" };

const sections = ["shared_blocks", "activity"] as const;

/** `text`: null where there is no news. `told`: what the next cycle need not be told again. */
type News = {
  section: Told;
  text: string | null;
  told: Record<string, string>;
  dropped: Dropped[];
  blocks?: ShownBlock[];
};

/** What the model was told before, and what the cycle is about; read only where there is anything to ask for. */
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

/** What there is to be told now, but of `done`. Nobody is asked where nothing is shared, and activity is off. */
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

const tellingOf = ({ section, text }: News): Telling[] =>
  text === null ? [] : [{ section, message: { role: "user", content: text } }];

/** What the next cycle would be told, and the blocks that others share with it. */
export const tellingsTo = async (
  services: RunServices,
  before: Before,
  signal: AbortSignal,
): Promise<{ tellings: Telling[]; dropped: Dropped[]; blocks: ShownBlock[] }> => {
  const news = await newsOfOthers(services, before, signal);
  return {
    tellings: news.flatMap(tellingOf),
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
    for (const { section, dropped, ...each } of news) {
      for (const { message } of tellingOf({ section, dropped, ...each })) {
        services.journal.append({
          runOrdinal: run.ordinal,
          step: 0,
          kind: "preview",
          content: message,
          meta: { kind: "told", section, ...(dropped.length === 0 ? {} : { dropped }) },
        });
      }
      run.told = { ...run.told, [keys[section]]: each.told };
    }
    services.runs.update(run.ordinal, { told: run.told });
  });
};

/** What a cycle was told of others, by the rows of its run. */
export const tellingsIn = (rows: JournalRow[]): Telling[] =>
  rows.flatMap((row) =>
    row.meta?.kind === "told" && isMessage(row) ? [{ section: row.meta.section, message: row.content }] : [],
  );
