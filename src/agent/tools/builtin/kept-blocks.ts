import * as z from "zod";
import { type Block, BlockType } from "../../../protocol/block.ts";
import { ColloquyError } from "../../../shared/errors.ts";
import { maxToolOutputTokens } from "../../bounds.ts";
import { ownPrincipal, type SharedBlockRow } from "../../memory/blocks/shared-blocks.ts";
import type { BlockRow } from "../../memory/blocks/shares.ts";
import { estimateText, firstFitting } from "../../tokens.ts";
import { asUnknownOutcome } from "../outcome.ts";
import { type CallContext, defineTool, type ToolContext } from "../tool.ts";
import { author, changes, done, from, label, ownBlock, reads } from "./block-parts.ts";

/** Which blocks there are, and how they are kept: in sight, put away, brought back, deleted. What changes nothing fails. */
const nothingChanged = (why: string): ColloquyError => new ColloquyError("conflict", `nothing changed: ${why}`);

/** A shared block as its owner has it now: what was heard of it may be old. */
const newestOf = async (row: SharedBlockRow, { services, signal }: CallContext): Promise<Block> => {
  const [block] = await services.sharedBlocks.read([row], signal);
  if (block) return block;
  throw new ColloquyError("not_found", `"${row.label}" is not shared with you any more`);
};

/** Why a pin, or taking it out, would change nothing; undefined where it would. */
const idlePin = (
  { type, pinned, archived }: Pick<BlockRow, "type" | "pinned"> & Partial<Pick<BlockRow, "archived">>,
  isPinned: boolean,
): string | undefined => {
  if (type === "core") return "is a core block, which is always before you";
  if (isPinned && archived) return "is put away; block_restore brings it back";
  if (isPinned && type === "archival") return "is an archival block, which search finds and block_load reads";
  if (isPinned && type === "log") return "is a log block, which search finds and block_load reads";
  if (pinned !== isPinned) return undefined;
  return isPinned ? "is pinned already" : "is not pinned";
};

export const pinningTools = [
  ...(
    [
      ["block_pin", "Keep a working block before you.", true],
      ["block_unpin", "Let a working block go out of sight; it is kept.", false],
    ] as const
  ).map(([name, description, isPinned]) =>
    defineTool({
      name,
      description,
      input: z.strictObject({ label, from }),
      ...changes,
      async execute({ label: wanted, from: owner }, context) {
        const { services, replayed } = context;
        const shared = services.sharedBlocks.findToChange(wanted, owner);
        const block = shared ? await newestOf(shared, context) : services.blocks.get(wanted);
        const idle = idlePin(block, isPinned);
        if (idle !== undefined && !(replayed && block.pinned === isPinned)) throw nothingChanged(`"${wanted}" ${idle}`);
        if (shared) services.sharedBlocks.pin(shared, isPinned);
        else if (idle === undefined) {
          await services.blocks.update(wanted, { pinned: isPinned }, author(services));
          services.blocks.touch(wanted);
        }
        return { value: { success: true } };
      },
    }),
  ),
  defineTool({
    name: "block_archive",
    description: "Put a block away: until block_restore it is found by search only.",
    input: z.strictObject({ label }),
    ...changes,
    execute({ label: name }, { services, replayed }) {
      const { type } = ownBlock(services, name);
      if (type === "core") throw new ColloquyError("forbidden", `"${name}" is a core block: those are never put away`);
      if (type !== "archival") {
        return done(services.blocks.update(name, { type: "archival", pinned: false }, author(services)));
      }
      if (!replayed) throw nothingChanged(`"${name}" is put away already`);
      return { value: { success: true } };
    },
  }),
];

/** Tokens of a list beside its blocks. */
const frameTokens = 100;

type Listed = Pick<Block, "label" | "type" | "schema" | "permission" | "rendered" | "description" | "pinned">;

/** A block in a list. `size`: the characters that it shows. */
const listed = (block: Listed, owner: { shared: boolean; owner: string }, archived: boolean) => {
  const { label: name, type, schema, permission, rendered, description, pinned } = block;
  return {
    ...{ label: name, type, schema: schema.type, permission, size: [...rendered].length, ...owner },
    ...(description === "" ? {} : { description }),
    ...{ pinned, archived },
  };
};

const sharedLine = (block: Block) => {
  const owner = { shared: true, owner: block.sharedFrom?.agentName ?? "" };
  if (block.version > 0) return listed(block, owner, false);
  const { label: name, type, permission, pinned } = block;
  return { label: name, type, permission, ...owner, pinned, unavailable: true };
};

const short = <Each extends object>(block: Each): Each => ({ ...block, description: undefined });

export const keptBlockTools = [
  defineTool({
    name: "block_list",
    description: "Which blocks you have, and which others share with you; block_load reads one.",
    input: z.strictObject({
      type: BlockType.optional(),
      shared: z.boolean().optional().describe("true: others' only; false: yours only."),
      offset: z.int().min(0).max(1000).default(0).describe("How many of the first to leave out."),
    }),
    ...reads,
    async execute({ type, shared, offset }, { services, signal, roomTokens }: ToolContext) {
      const { blocks, sharedBlocks, identity } = services;
      const owner = { shared: false, owner: identity.get().config.name };
      const own = shared === true ? [] : blocks.list().map((row) => listed(row, owner, row.archived !== null));
      const others = shared === false ? [] : await sharedBlocks.read(sharedBlocks.list(), signal);
      const wanted = [...own, ...others.map(sharedLine)].filter((each) => type === undefined || each.type === type);
      const room = Math.min(maxToolOutputTokens, roomTokens()) - frameTokens;
      const fit = firstFitting(wanted.slice(offset), room, (each) => estimateText(JSON.stringify(each)));
      // One at least, so that the next offset is another.
      const shown = fit.length > 0 ? fit : wanted.slice(offset, offset + 1).map(short);
      const next = offset + shown.length;
      const more = { omitted: `${wanted.length - next} more do not fit: ask with offset: ${next}` };
      return { value: { blocks: shown, ...(next >= wanted.length ? {} : more) } };
    },
  }),
  defineTool({
    name: "block_restore",
    description: "Bring back a block that was put away, as it was kept before.",
    input: z.strictObject({ label }),
    ...changes,
    async execute({ label: name }, { services, replayed }) {
      const { type, pinned, archived } = ownBlock(services, name);
      if (archived === null && !replayed) {
        const why = type === "archival" ? "was never put away; block_load reads it as it is" : "is not put away";
        throw nothingChanged(`"${name}" ${why}`);
      }
      // No agent puts a core block away: a person did.
      if (archived?.type === "core") {
        throw new ColloquyError("forbidden", `"${name}" was a core block: a person put it away, and sets its type`);
      }
      const kept = archived ?? { type, pinned };
      if (archived) {
        await services.blocks.update(name, archived, author(services));
        services.blocks.touch(name);
      }
      return { value: { success: true, ...kept } };
    },
  }),
  defineTool({
    name: "block_delete",
    description: "Delete a block for good, where you have Admin permission on it.",
    input: z.strictObject({ label, from }),
    ...changes,
    async execute({ label: name, from: owner }, { services, callId, replayed, signal }) {
      try {
        const by = ownPrincipal(services);
        if (!services.sharedBlocks.find(name, owner)) services.blocks.get(name);
        await asUnknownOutcome(services.sharedBlocks.delete(name, { by, callId }, signal, owner));
      } catch (error) {
        // In a replay, a block that is not there any more was deleted before the cut.
        if (!(replayed && error instanceof ColloquyError && error.code === "not_found")) throw error;
      }
      return { value: { success: true } };
    },
  }),
];
