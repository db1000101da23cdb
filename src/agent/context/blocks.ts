import type { BlockType, Permission } from "../../protocol/block.ts";
import type { Dropped } from "../../protocol/exported-history.ts";
import { maxToldShares } from "../bounds.ts";
import { estimateText, firstFitting } from "../tokens.ts";
import { quote, quoteLines } from "./wording.ts";

/** A block that an agent may read, its own or one that is shared with it. */
export type KnownBlock = WrittenBlock & {
  /** Unique, unlike the label, which a block that another agent shares may have too. */
  key: string;
  type: BlockType;
  pinned: boolean;
  /** When it was last changed, loaded or referenced, in milliseconds since the epoch. */
  usedAt: number;
};

/** A block that another agent shares, as far as the reader has heard. */
export type KnownShare = { key: string; label: string; owner: string; permission: Permission };

/** A block as it stands in an input. */
export type ShownBlock = Pick<KnownBlock, "key" | "label" | "type"> & { text: string };

export type ShownBlocks = { shown: ShownBlock[]; dropped: Dropped[] };

/** Core blocks are always in the input; working ones if they are pinned or an event names them. */
const isInInput = ({ type, pinned, label }: KnownBlock, batchBlocks: ReadonlySet<string>): boolean =>
  type === "core" || (type === "working" && (pinned || batchBlocks.has(label)));

const order = (one: KnownBlock, other: KnownBlock): number =>
  Number(one.type !== "core") - Number(other.type !== "core") ||
  Number(one.sharedFrom !== undefined) - Number(other.sharedFrom !== undefined) ||
  (one.label < other.label ? -1 : one.label > other.label ? 1 : 0);

/** The order in which working blocks are left out: unpinned ones first, then by how long ago they were used. */
const leavesBefore = (one: KnownBlock, other: KnownBlock): number =>
  Number(one.pinned) - Number(other.pinned) || one.usedAt - other.usedAt;

const cutNote = "  [The rest does not fit context.memoryTokens: block_load reads it]";

/** As many whole lines as fit, and a line that says that more follow. Its fields go last. */
const cutTo = (block: KnownBlock, maxTokens: number): string => {
  const lines = block.rendered.split("\n");
  let kept = lines.length;
  let text = renderBlock(block);
  while (kept > 0 && estimateText(text) > maxTokens) {
    kept = Math.floor(kept / 2);
    text = renderBlock({ ...block, rendered: lines.slice(0, kept).join("\n") }, cutNote);
  }
  if (estimateText(text) <= maxTokens) return text;
  return renderBlock({ ...block, fields: undefined, rendered: "" }, cutNote);
};

/**
 * The blocks of an input: core before working, own before shared, by label. They fill at most `maxTokens`. Working ones
 * are left out first, whole. Core ones that do not fit even then are cut at their ends, with a note.
 */
export const blocksInInput = (
  blocks: KnownBlock[],
  { batchBlocks, maxTokens }: { batchBlocks: ReadonlySet<string>; maxTokens: number },
): ShownBlocks => {
  const all = blocks
    .filter((block) => isInInput(block, batchBlocks))
    .map((block) => ({ block, text: renderBlock(block) }));
  const core = all.filter(({ block }) => block.type === "core");
  const leaving = all.filter(({ block }) => block.type !== "core").sort((a, b) => leavesBefore(a.block, b.block));
  const staying = firstFitting(leaving.toReversed(), maxTokens - tokensOf(core), ({ text }) => estimateText(text));
  const left = leaving.slice(0, leaving.length - staying.length);
  const dropped = left.map(({ block }) => ({
    ...{ name: `block:${block.label}`, reason: "it does not fit context.memoryTokens: block_load reads it" },
  }));
  const kept = [...core, ...staying].sort((a, b) => order(a.block, b.block));
  let size = tokensOf(kept);
  let room = maxTokens;
  const shown = kept.map(({ block, text: whole }, index) => {
    const text = size <= maxTokens ? whole : cutTo(block, room / (kept.length - index));
    if (text !== whole) {
      size -= estimateText(whole) - estimateText(text);
      dropped.push({ name: `block:${block.label}`, reason: "its end does not fit context.memoryTokens" });
    }
    room -= estimateText(text);
    return { key: block.key, label: block.label, type: block.type, text };
  });
  return { shown, dropped };
};

export const tokensOf = (blocks: { text: string }[]): number =>
  blocks.reduce((sum, { text }) => sum + estimateText(text), 0);

/** The key of an agent's own block is its label; of another's, `label@owner`. */
export const keyOf = (label: string, ownerId?: string): string =>
  ownerId === undefined ? label : `${label}@${ownerId}`;

export const ownerOf = (key: string): string | undefined => key.split("@", 2)[1];

export const labelOf = (key: string): string => key.split("@", 1)[0] ?? key;

/** The lines about shared blocks that are not in an input, and a line for those beyond the bound. */
export const shareLines = (shares: KnownShare[], since: "" | "now " = ""): { lines: string[]; more: string[] } => {
  const told = shares.slice(0, maxToldShares);
  const left = shares.length - told.length;
  return {
    lines: told.map(
      ({ label, owner, permission }) =>
        `${quote(label)} is ${since}shared with you by ${quote(owner)} (${permission}): block_load to read it`,
    ),
    more: left === 0 ? [] : [`(${left} more are ${since}shared with you: block_list lists them)`],
  };
};

export const blocksText = (blocks: ShownBlock[]): string => blocks.map(({ text }) => text).join("\n");

export type WrittenBlock = {
  label: string;
  permission: Permission;
  /** The name of the agent that shares it. */
  sharedFrom?: string | undefined;
  /** Left out where descriptions are off. */
  description?: string | undefined;
  /** Its declared fields, in lines. Left out for a text, and where schemas are off. */
  fields?: string | undefined;
  rendered: string;
};

/** Nothing in a block ends it: whatever its authors wrote stands behind bars, and its tags do not (S2, C4). */
export const renderBlock = (block: WrittenBlock, note?: string): string => {
  const { label, permission, sharedFrom, description, fields, rendered } = block;
  const from = sharedFrom === undefined ? "" : ` shared_from=${quote(sharedFrom)}`;
  const parts = [description ?? "", fields ?? "", rendered].filter((part) => part !== "");
  return [
    `<block:${label} permission="${permission}"${from}>`,
    ...(parts.length === 0 ? [] : [quoteLines(parts.join("\n\n"))]),
    ...(note === undefined ? [] : [note]),
    `</block:${label}>`,
  ].join("\n");
};
