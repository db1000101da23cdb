import type { Dropped } from "../../../protocol/exported-history.ts";
import { maxChangedTextCharacters } from "../../bounds.ts";
import type { HeadBlocks, ToldState } from "../../records.ts";
import { estimateText, firstFitting } from "../../tokens.ts";
import { type AgentState, isOpenKey, openKey, type StateLine, stateLines } from "../agent-state.ts";
import { blocksText, type KnownShare, labelOf, type ShownBlock, shareLines } from "../blocks.ts";
import { changedMessages, emptyList, goneItems, headings, listItem, openMark, stateSections } from "../grammar.ts";
import { excerpt, quote } from "../wording.ts";

/**
 * The agent's state by sections: in full at the start of a window, afterwards only the lines that changed. Nothing that
 * was sent is rewritten.
 */
type Kind = keyof typeof stateSections;
const kinds: Kind[] = ["spaces", "goals", "memories", "plans", "blocks"];
/** A key of a told state: the messages that others changed. They are told as changes alone. */
const messages = "MESSAGES";

/** The lines that tell a run which messages were edited or deleted, by message id. */
export const toldMessages = (changed: { messageId: string; text: string | null }[]): ToldState => {
  if (changed.length === 0) return {};
  const line = (messageId: string, text: string | null): string =>
    text === null
      ? changedMessages.deleted.write({ messageId })
      : changedMessages.edited.write({ messageId, text: excerpt(text, maxChangedTextCharacters) });
  return { [messages]: Object.fromEntries(changed.map(({ messageId, text }) => [messageId, line(messageId, text)])) };
};

/** The name of an item by its key in a told state, and the mark of one that is the open mind's. */
const namedBy = (key: string): { key: string; mark: string } =>
  isOpenKey(key) ? { key: key.slice(0, -openKey.length), mark: openMark } : { key, mark: "" };

const keptLine = (key: string): string => {
  const named = namedBy(key);
  return `${quote(named.key)}${named.mark} is kept, not shown: get_memories reads it`;
};

/** The memories in a told state that are named only, since they did not fit. */
export const untold = (told: ToldState): Dropped[] => {
  const kept = Object.entries(told.MEMORIES ?? {}).filter(([key, line]) => line === keptLine(key)).length;
  return kept === 0 ? [] : [{ name: "memories", reason: `${kept} do not fit context.memoryTokens` }];
};

/**
 * The lines of each section by the key of their item. The newest memories that fit `memoryTokens` are told in full, the
 * others by key only.
 */
export const toldState = (state: AgentState, memoryTokens = Number.POSITIVE_INFINITY): ToldState => {
  const lists = stateLines(state);
  const newestFirst = lists.memories.toSorted((one, other) => one.rank - other.rank);
  const inFull = new Set(firstFitting(newestFirst, memoryTokens, ({ line }) => estimateText(line)));
  const memories = lists.memories.map((each) => (inFull.has(each) ? each : { ...each, line: keptLine(each.key) }));
  const byKey = (lines: StateLine[]) => Object.fromEntries(lines.map(({ key, line }) => [key, line]));
  return {
    ...(state.blocks ? { BLOCKS: toldBlocks(state.blocks.shown) } : {}),
    ...{ "YOUR SPACES": byKey(lists.spaces), GOALS: byKey(lists.goals) },
    ...{ MEMORIES: byKey(memories), PLANS: byKey(lists.plans) },
  };
};

/** The digest of each block's text, which shows later whether the text changed. */
export const toldBlocks = (blocks: ShownBlock[]): Record<string, string> =>
  Object.fromEntries(blocks.map(({ key, text }) => [key, digest(text)]));

const withBlocks = (text: string, blocks: ShownBlock[]): string =>
  blocks.length === 0 ? text : `${text}\n${blocksText(blocks)}`;

/** The lines about messages in `now` that `before` has not. */
export const messageNews = (before: ToldState, now: ToldState): string[] =>
  Object.entries(now[messages] ?? {}).flatMap(([key, line]) => (before[messages]?.[key] === line ? [] : [line]));

const block = (heading: string, sections: [kind: Kind | "messages", lines: string[]][]): string =>
  [
    heading,
    ...sections.flatMap(([kind, lines]) => [
      `  ${kind === "messages" ? messages : stateSections[kind]}:`,
      ...(lines.length === 0 ? [`    ${emptyList}`] : lines.map((item) => `    ${listItem.write({ item })}`)),
    ]),
  ].join("\n");

/** `head`: the blocks that the instructions hold already. */
export const renderState = (told: ToldState, blocks: ShownBlock[] = [], head: HeadBlocks = {}): string => {
  const listed = kinds.filter((kind) => kind !== "blocks");
  const lists = listed.map((kind): [Kind, string[]] => [kind, Object.values(told[stateSections[kind]] ?? {})]);
  return withBlocks(
    block(headings.state, lists),
    blocks.filter(({ key, text }) => head[key] !== text),
  );
};

/** The permission of each block that others share with the agent. */
export const toldShares = (shares: KnownShare[]): Record<string, string> =>
  Object.fromEntries(shares.map(({ key, permission }) => [key, permission]));

/**
 * Lines about the shared blocks that came since `before` was told, or have another permission now, and about those that
 * were taken back. Left out: blocks that are in this input, or were in the last one, with all that they hold.
 */
export const shareNews = (
  before: Record<string, string>,
  shares: KnownShare[],
  { inInput, inLast }: { inInput: Record<string, string>; inLast: Record<string, string> },
): string[] => {
  const now = toldShares(shares);
  const { lines, more } = shareLines(
    shares.filter(({ key }) => before[key] !== now[key] && !(key in inInput)),
    "now ",
  );
  const taken = Object.keys(before).filter((key) => !(key in now || key in inLast));
  return [...lines, ...more, ...taken.map((key) => `${quote(labelOf(key))} is no longer shared with you`)];
};

/**
 * The lines that changed between two tellings, or null if none did; blocks that changed stand after them, whole.
 * `more`: further lines about blocks.
 */
export const renderStateChanges = (
  before: ToldState,
  now: ToldState,
  blocks: ShownBlock[] = [],
  more: string[] = [],
): string | null => {
  const edited = blocks.filter(({ key, text }) => before.BLOCKS?.[key] !== digest(text));
  const changed: [Kind | "messages", string[]][] = [];
  const news = messageNews(before, now);
  if (news.length > 0) changed.push(["messages", news]);
  for (const kind of kinds) {
    const old = before[stateSections[kind]] ?? {};
    const current = now[stateSections[kind]] ?? {};
    const lines = [
      ...Object.entries(current)
        .filter(([key, line]) => old[key] !== line)
        .map(([key, line]) => (kind === "blocks" ? `${quote(labelOf(key))} is now as below` : line)),
      ...Object.keys(old)
        .filter((key) => !(key in current))
        .map((key) => goneItems[kind].write(kind === "blocks" ? { key: labelOf(key), mark: "" } : namedBy(key))),
      ...(kind === "blocks" ? more : []),
    ];
    if (lines.length > 0) changed.push([kind, lines]);
  }
  return changed.length === 0 ? null : withBlocks(block(headings.stateChanges, changed), edited);
};

/** A digest of 53 bits to compare texts by. Not for secrets. */
export const digest = (text: string): string => {
  let high = 0xdeadbeef;
  let low = 0x41c6ce57;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    high = Math.imul(high ^ code, 2654435761);
    low = Math.imul(low ^ code, 1597334677);
  }
  high = Math.imul(high ^ (high >>> 16), 2246822507) ^ Math.imul(low ^ (low >>> 13), 3266489909);
  low = Math.imul(low ^ (low >>> 16), 2246822507) ^ Math.imul(high ^ (high >>> 13), 3266489909);
  return (4294967296 * (2097151 & low) + (high >>> 0)).toString(36);
};
