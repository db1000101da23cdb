import type { FeedPlace, FeedRequest, FeedText, MindSettings } from "../../protocol/agent-rpc.ts";
import { continuityFacts } from "../../protocol/continuity.ts";
import { maxFedCharacters, maxFedRuns, maxPastRuns } from "../bounds.ts";
import { askOpenMind } from "../call-with-retry.ts";
import { digest } from "../context/consciousness/state.ts";
import type { JournalRow } from "../journal.ts";
import { type FeedPart, spacePart } from "../memory/feed-state.ts";
import type { RunRow } from "../runs.ts";
import { nextWindow, ownBlocks, shownBlocks } from "./composing.ts";
import type { RunServices } from "./run-services.ts";
import { adoptSettings, settingsFor } from "./settings.ts";

/**
 * How a compartment hears of its agent's open mind: before a run begins, it asks for what is new there.
 *
 * Invariants
 * 1. Answering changes nothing in the open mind: it reads its tables alone, and no input of it can tell.
 * 2. What came is stored in one transaction with the place up to which it came. A crash repeats nothing and loses nothing.
 * 3. The open mind's runs are stored among the compartment's own in the order of their arrival: its input only grows.
 * 4. Where nothing is new, no row is written.
 */
type FedRun = { row: RunRow; journal: JournalRow[] };

type Feed = {
  /** Runs that have ended since, in the order of their ends. */
  runs: FedRun[];
  /** Where nothing is new of the runs, it is left out. `left`: older ones that were left out. */
  come?: { place: FeedPlace; left: number };
  /** In a first feed: the summary of the cycles before those. */
  summary: string | null;
  /** Left out where they are those that the compartment has. */
  settings?: MindSettings;
  parts: FeedPart[];
  /** Parts that are gone. */
  gone: string[];
};

/** The newest run before those that a first feed brings, and how many runs lie before it untold. */
const beforeFirst = ({ identity, windows }: RunServices, last: number): { upTo: number; untold: number } => {
  const { config } = identity.get();
  const window = continuityFacts(config).keepsRuns ? windows.newest(config.continuity) : undefined;
  if (window) return { upTo: Math.min(last, window.firstRun - 1), untold: 0 };
  const upTo = Math.max(0, last - maxPastRuns);
  return { upTo, untold: upTo };
};

const hasEnded = ({ completedAt }: RunRow): boolean => completedAt !== null;

/** Without the words that are being taken out, here or in the compartment. What is older than they are stays. */
const cleanRun = ({ redactions }: RunServices, { row, journal }: FedRun): FedRun => ({
  row: redactions.clean(row, row.completedAt ?? undefined),
  journal: journal.map((each) => redactions.clean(each, each.createdAt)),
});

const cleanParts = ({ redactions }: RunServices, parts: FeedPart[]): FeedPart[] =>
  parts.map((each) => ({ ...each, value: redactions.cleanPart(each.value) }));

/** A run as JSON. Of a timeline's inputs, and of cycles that are not kept, no later input shows the texts. */
const asText = (services: RunServices, row: RunRow): string =>
  JSON.stringify(cleanRun(services, { row, journal: services.journal.ofRuns([row], { texts: row.kept }) }));

/** The runs that ended since, as JSON, and how far that comes. */
const runsSince = (services: RunServices, place: FeedPlace | null): { texts: string[]; come: Feed["come"] } => {
  const { runs, calls } = services;
  const last = runs.nextOrdinal() - 1;
  const { upTo, untold } = place ? { upTo: place.upTo, untold: 0 } : beforeFirst(services, last);
  const begun = last - upTo;
  const newest = begun === 0 ? [] : runs.page(undefined, Math.min(begun, maxFedRuns), undefined);
  const known = runs.those(place?.open ?? []);
  const all = [...newest, ...known, ...runs.active(), ...runs.those(calls.waitingRuns())];
  const open = [...new Set(all.filter((run) => !hasEnded(run)).map(({ ordinal }) => ordinal))];
  const ended = begun - open.filter((ordinal) => ordinal > upTo).length + known.filter(hasEnded).length;
  if (place && ended === 0) return { texts: [], come: undefined };
  const newestFirst = [...newest, ...known]
    .filter(hasEnded)
    .sort((one, other) => (other.completedAt ?? 0) - (one.completedAt ?? 0) || other.ordinal - one.ordinal);
  const texts: string[] = [];
  let room = maxFedCharacters;
  for (const run of newestFirst.slice(0, maxFedRuns)) {
    const text = asText(services, run);
    // A run that is too long is left out. The runs before it are still told.
    if (text.length > maxFedCharacters) continue;
    room -= text.length;
    if (room < 0) break;
    texts.unshift(text);
  }
  return { texts, come: { place: { upTo: last, open }, left: untold + ended - texts.length } };
};

/** The state that any input shows, part by part. */
const partsOf = ({ memories, goals, plans, spaces }: RunServices, spaceId: string): FeedPart[] => {
  const lists = { memories: memories.list(), goals: goals.list(), plans: plans.list(), keptDays: spaces.keptDays() };
  const others = spaces.mine().filter(({ id }) => id !== spaceId);
  return [
    ...Object.entries(lists).map(([part, value]) => ({ part, hash: digest(JSON.stringify(value)), value })),
    ...others.map((value) => ({ part: `${spacePart}${value.id}`, hash: String(value.version), value })),
  ];
};

/** In the open mind: what is new for this compartment. */
export const feedFor = (services: RunServices, asked: FeedRequest): FeedText => {
  const { spaceId, place, parts: known } = asked;
  const { texts, come } = runsSince(services, place);
  const parts = partsOf(services, spaceId);
  const names = new Set(parts.map(({ part }) => part));
  const settings = settingsFor(services.identity.get());
  const window = place ? undefined : services.windows.newest("consciousness");
  const rest: Omit<Feed, "runs"> = {
    ...(come ? { come } : {}),
    summary: services.redactions.clean(window?.summary ?? null, window?.createdAt),
    ...(settings.version > asked.settings ? { settings } : {}),
    parts: cleanParts(
      services,
      parts.filter(({ part, hash }) => known[part] !== hash),
    ),
    gone: Object.keys(known).filter((part) => part.startsWith(spacePart) && !names.has(part)),
  };
  return `{"runs":[${texts.join()}],${JSON.stringify(rest).slice(1)}`;
};

/** Stores a run of the open mind as one that has ended. The windows of its steps are not known here. */
const takeRun = ({ runs, journal }: RunServices, { row, journal: rows }: FedRun): void => {
  const from = journal.nextSeq();
  const { ordinal: runOrdinal } = runs.takeFed({ ...row, journalTo: from + rows.length - 1 }, from);
  for (const { step, kind, content, meta, createdAt } of rows) {
    const noted = meta?.kind === "assistant" ? { ...meta, windowId: 0 } : meta;
    journal.append({ runOrdinal, step, kind, content, meta: noted, createdAt });
  }
};

/** In a compartment: asks the open mind, and stores what is new. Throws where it cannot be reached. */
export const takeFeed = async (services: RunServices, signal: AbortSignal): Promise<void> => {
  const { env, identity, feed, runs, windows } = services;
  const { id, workspaceId, compartmentSpaceId, settingsVersion } = identity.get();
  const before = feed.runs();
  const place = before?.place ?? null;
  const asked = { spaceId: compartmentSpaceId ?? "", place, settings: settingsVersion, parts: feed.hashes() };
  const ask = () => env.AGENT.getByName(id).feed(workspaceId, asked);
  const text = await askOpenMind(services, ask, signal);
  signal.throwIfAborted();
  const told: Feed = JSON.parse(text);
  const { come, settings, gone } = told;
  const [parts, summary] = [cleanParts(services, told.parts), services.redactions.clean(told.summary)];
  if (!come && !settings && parts.length + gone.length === 0) return;
  services.transaction(() => {
    if (settings) adoptSettings(services, settings);
    const from = runs.nextOrdinal();
    for (const run of told.runs) takeRun(services, cleanRun(services, run));
    const value = come && { place: come.place, left: (before?.left ?? 0) + come.left };
    feed.put([...parts, ...(value ? [{ part: "runs", hash: "", value }] : [])], gone);
    services.armCuts();
    const { config } = identity.get();
    if (before || !continuityFacts(config).keepsRuns) return;
    // The first window goes on from the open mind's.
    const { shown } = shownBlocks(services, ownBlocks(services), []);
    windows.save({ ...nextWindow(services, config.continuity, from, shown), summary, toldFrom: runs.nextOrdinal() });
  });
};
