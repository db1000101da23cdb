import type { BlockType, Permission } from "../../protocol/block.ts";
import type { Dropped } from "../records.ts";
import { quote } from "./quote.ts";
import { estimateText } from "./tokens.ts";

/** A block that an agent may read, its own or one that is shared with it. */
export type KnownBlock = FencedBlock & {
  /** Tells it from others of the same label, which other agents share. */
  key: string;
  type: BlockType;
  pinned: boolean;
  /** When it was last changed, loaded or referenced, in milliseconds since the epoch. */
  usedAt: number;
};

/** A block as it stands in an input. */
export type ShownBlock = Pick<KnownBlock, "key" | "label" | "type"> & { text: string };

export type ShownBlocks = { shown: ShownBlock[]; dropped: Dropped[] };

/** `batchBlocks`: labels that events of this run name. */
export type BlockRoom = { batchBlocks: ReadonlySet<string>; maxTokens: number };

/** Core blocks always; working ones that are pinned, or that an event names. Others are found by search. */
const isInInput = ({ type, pinned, label }: KnownBlock, batchBlocks: ReadonlySet<string>): boolean =>
  type === "core" || (type === "working" && (pinned || batchBlocks.has(label)));

const order = (one: KnownBlock, other: KnownBlock): number =>
  Number(one.type !== "core") - Number(other.type !== "core") ||
  Number(one.sharedFrom !== undefined) - Number(other.sharedFrom !== undefined) ||
  (one.label < other.label ? -1 : one.label > other.label ? 1 : 0);

/** Which working block goes first where not all fit: one that is not pinned, then the one that was used longest ago. */
const leavesBefore = (one: KnownBlock, other: KnownBlock): number =>
  Number(one.pinned) - Number(other.pinned) || one.usedAt - other.usedAt;

const cutNote = "[The rest does not fit context.memoryTokens: block_load reads it]";

/** As many whole lines as fit, and a line that says that more follow. */
const cutTo = (block: KnownBlock, maxTokens: number): string => {
  const lines = block.rendered.split("\n");
  let kept = lines.length;
  let text = renderBlock(block);
  while (kept > 0 && estimateText(text) > maxTokens) {
    kept = Math.floor(kept / 2);
    text = renderBlock({ ...block, rendered: [...lines.slice(0, kept), cutNote].join("\n") });
  }
  return text;
};

/**
 * The blocks of an input, core before working, own before shared, by label. They fill at most `maxTokens`: working ones
 * leave first, whole; of core ones that do not fit even then, each is cut at its end and says so.
 */
export const blocksInInput = (blocks: KnownBlock[], { batchBlocks, maxTokens }: BlockRoom): ShownBlocks => {
  const inInput = blocks.filter((block) => isInInput(block, batchBlocks));
  const texts = new Map(inInput.map((block) => [block, renderBlock(block)]));
  const size = (): number => [...texts.values()].reduce((sum, text) => sum + estimateText(text), 0);
  const dropped: Dropped[] = [];
  for (const block of [...texts.keys()].filter(({ type }) => type !== "core").sort(leavesBefore)) {
    if (size() <= maxTokens) break;
    texts.delete(block);
    dropped.push({ name: `block:${block.label}`, reason: "it does not fit context.memoryTokens: block_load reads it" });
  }
  const core = [...texts.keys()].sort(order);
  let room = maxTokens;
  for (const [index, block] of core.entries()) {
    if (block.type !== "core") continue;
    const share = size() <= maxTokens ? Number.POSITIVE_INFINITY : room / (core.length - index);
    const text = cutTo(block, share);
    if (text !== texts.get(block)) {
      texts.set(block, text);
      dropped.push({ name: `block:${block.label}`, reason: "its end does not fit context.memoryTokens" });
    }
    room -= estimateText(text);
  }
  const shown = core.map((block) => ({
    key: block.key,
    label: block.label,
    type: block.type,
    text: texts.get(block) ?? "",
  }));
  return { shown, dropped };
};

export const tokensOf = (blocks: ShownBlock[]): number => blocks.reduce((sum, { text }) => sum + estimateText(text), 0);

/** The key of an agent's own block is its label; of another's, `label@owner`. */
export const keyOf = (label: string, ownerId?: string): string =>
  ownerId === undefined ? label : `${label}@${ownerId}`;

export const ownerOf = (key: string): string | undefined => key.split("@", 2)[1];

export const labelOf = (key: string): string => key.split("@", 1)[0] ?? key;

/** Blocks as a part of a prompt, or nothing. */
export const blocksText = (blocks: ShownBlock[]): string => blocks.map(({ text }) => text).join("\n");

/**
 * A block as it stands in a prompt. What it holds comes from anybody, so whatever could begin or end a block in it gets
 * a backslash after its `<`, one more than there were: nothing in it closes it, and what was there can be read (S2).
 */
const tag = /<(\\*)(\/?)(?=block)/gi;

export const fenced = (content: string): string => content.replace(tag, "<\\$1$2");

export type FencedBlock = {
  label: string;
  permission: Permission;
  /** The name of the agent that shares it. */
  sharedFrom?: string | undefined;
  /** Left out where descriptions are off. */
  description?: string | undefined;
  rendered: string;
};

export const renderBlock = ({ label, permission, sharedFrom, description, rendered }: FencedBlock): string => {
  const from = sharedFrom === undefined ? "" : ` shared_from=${quote(sharedFrom).replaceAll("<", "\\u003c")}`;
  const parts = [description ?? "", rendered].filter((part) => part !== "").map(fenced);
  return `<block:${label} permission="${permission}"${from}>\n${parts.join("\n\n")}\n</block:${label}>`;
};
