import { z } from "zod";
import { CreateBlock, PutBlockShare, PutBlockSpace } from "../../../protocol/block.ts";
import { BlockOperations, maxOperations, operationNames } from "../../../protocol/block-operation.ts";
import { Viewport } from "../../../protocol/block-schema.ts";
import { ColloquyError } from "../../../shared/errors.ts";
import { unsoundness } from "../../../shared/sound-json.ts";
import { maxToolOutputTokens } from "../../bounds.ts";
import { estimateText } from "../../context/tokens.ts";
import type { BlockGrantee, CallBlocks } from "../../memory/blocks/call-blocks.ts";
import { asUnknownOutcome } from "../outcome.ts";
import { acts, defineTool, fitting, invalidInput, looks, parseInput, type ToolContext } from "../tool.ts";

/**
 * Blocks of memory. Their declarations are short, since every step of every agent pays for them: what they stand for
 * in full is read by the protocol's own schemas, and refused in their words.
 */
const label = z.string().max(64);
const from = z.string().max(64).optional().describe("Its owner, if another agent shares it.");

/** What is shown of a block after an edit, in characters. */
const maxEcho = 1000;
/** What a result holds beside the content. */
const frameTokens = 200;

const parsed = <Schema extends z.ZodType>(schema: Schema, input: unknown): z.infer<Schema> => {
  const issue = unsoundness(input);
  if (issue) throw invalidInput([issue]);
  return parseInput(schema, input);
};

/** As many lines from the start as there is room for. */
const fittingLines = (text: string, context: ToolContext): { content: string; note?: string } => {
  const room = Math.min(maxToolOutputTokens, Math.max(0, context.roomTokens() - frameTokens));
  if (estimateText(text) <= room) return { content: text };
  const lines = text.split("\n");
  const shown = fitting(lines, room, (line) => estimateText(line) + 1);
  return {
    content: shown.join("\n"),
    note: `cut: ${shown.length} of ${lines.length} lines; set a viewport with block_viewport to read the rest`,
  };
};

/** Does it, and has no more to say. */
const done = async (work: Promise<void>) => {
  await work;
  return { value: { success: true } };
};

const reads = { ...looks, showsInHistory: true, ofMemory: true } as const;
const changes = { ...acts, ofMemory: true } as const;

const BlockEdit = z.object({
  label,
  from,
  operations: z
    .array(z.looseObject({ op: z.enum(operationNames) }))
    .min(1)
    .max(maxOperations),
  onVersion: z.int().min(0).optional().describe("The version that you read: what others changed since is merged."),
});

const edited = async (
  { label: name, from: owner, operations, onVersion }: z.infer<typeof BlockEdit>,
  blocks: CallBlocks,
) => {
  const edit = { operations: parsed(BlockOperations, operations), onVersion };
  const { version, results, rendered } = await asUnknownOutcome(blocks.edit(name, edit, owner));
  const shown = rendered.length <= maxEcho ? { content: rendered } : {};
  return { success: true, version, results: results.map(({ message }) => message), ...shown };
};

const agent = z.string().min(1).max(64).optional().describe("Name or id of an agent of your spaces.");
const space = z.string().min(1).max(64).optional().describe("Or name or id of a space of yours: its people.");

const granteeOf = ({ agent, space }: { agent?: string | undefined; space?: string | undefined }): BlockGrantee => {
  if (agent !== undefined && space === undefined) return { kind: "agent", wanted: agent };
  if (space !== undefined && agent === undefined) return { kind: "space", wanted: space };
  throw new ColloquyError("tool_input_invalid", "give either agent or space");
};

export const blockTools = [
  defineTool({
    name: "block_load",
    description: "Read a block of your memory, or of another agent's that shares it with you.",
    input: z.object({ label, from, version: z.int().min(1).optional().describe("An earlier version.") }),
    ...reads,
    async execute({ label: name, ...view }, context) {
      const { type, permission, description, version, rendered, sharedFrom } = await context.blocks.load(name, view);
      const owner = sharedFrom === undefined ? {} : { sharedFrom: sharedFrom.agentName };
      return {
        value: { label: name, type, permission, description, version, ...owner, ...fittingLines(rendered, context) },
      };
    },
  }),
  defineTool({
    name: "block_edit",
    description: `Change a block, all operations or none. Each is {op, …} with:
text: set_text {text}, append_text {text}, replace_text {old, new, mode?: first|all|nth|regex, n?}, edit_range {startLine, endLine, text}, patch {patch: unified diff}
map: set_field {field, value}, append_to_list {field, value}, remove_from_list {field, index|value}, increment {field, by}
list: push_item {item}, insert_item {index, item}, set_item {index, item}, delete_item {index}, move_item {from, to}
log: append_log_entry {entry}
any: undo {}, redo {} of your own edits. In a composite add section. Items count from 0, lines from 1.`,
    input: BlockEdit,
    ...changes,
    consent: {
      approval: ({ label: name, from: owner, operations }, blocks) =>
        blocks.approvalOf(name, parsed(BlockOperations, operations), owner),
      carryOut: edited,
    },
    execute: async (input, { blocks }) => ({ value: await edited(input, blocks) }),
  }),
  defineTool({
    name: "block_create",
    description:
      "Make a block: core is always before you, working when pinned, archival and log are found by search. schema: text {viewport?}, map {fields: [{name, type: text|number|boolean|list|counter|timestamp, required?, default?}]}, list {itemSchema?, maxItems?}, log {displayLimit?, entryFields?} or composite {sections: [{name, schema}]}; text if left out.",
    input: z.object({
      label,
      type: z.enum(["core", "working", "archival", "log"]).default("working"),
      description: z.string().optional().describe("What it is for."),
      schema: z.looseObject({ type: z.string() }).optional(),
      content: z.unknown().optional(),
      pinned: z.boolean().optional(),
      permission: z
        .string()
        .optional()
        .describe("What you may do with it later; ReadWrite, or Admin to delete from it."),
    }),
    ...changes,
    async execute(input, context) {
      const { version } = await context.blocks.create(parsed(CreateBlock, input));
      return { value: { success: true, label: input.label, version } };
    },
  }),
  ...(
    [
      ["block_pin", "Keep a working block before you.", true],
      ["block_unpin", "Let a working block go out of sight; it is kept.", false],
    ] as const
  ).map(([name, description, isPinned]) =>
    defineTool({
      name,
      description,
      input: z.object({ label, from }),
      ...changes,
      execute: ({ label: wanted, from: owner }, { blocks }) => done(blocks.pin(wanted, isPinned, owner)),
    }),
  ),
  defineTool({
    name: "block_archive",
    description: "Put a block away: it is found by search only.",
    input: z.object({ label }),
    ...changes,
    execute: ({ label: name }, { blocks }) => done(blocks.archive(name)),
  }),
  defineTool({
    name: "block_viewport",
    description: "Show only some lines of a long text block; all of it if you leave them out.",
    input: z.object({
      label,
      section: z.string().max(64).optional(),
      startLine: Viewport.shape.startLine.optional(),
      displayLines: Viewport.shape.displayLines.optional(),
    }),
    ...changes,
    async execute({ label: name, section, startLine, displayLines }, context) {
      if ((startLine === undefined) !== (displayLines === undefined)) {
        throw new ColloquyError("tool_input_invalid", "give both startLine and displayLines, or neither");
      }
      const viewport = startLine === undefined || displayLines === undefined ? null : { startLine, displayLines };
      const { rendered } = await context.blocks.show(name, viewport, section);
      return { value: { success: true, ...fittingLines(rendered, context) } };
    },
  }),
  defineTool({
    name: "block_share",
    description:
      "Let another agent, or the people of a space, read a block of yours, and change it as the permission says.",
    input: z.object({
      label,
      agent,
      space,
      permission: z.string().optional().describe("Append for agents and ReadWrite for people, if left out."),
    }),
    ...changes,
    execute({ label: name, permission, ...given }, { blocks }) {
      const grantee = granteeOf(given);
      const { shape } = grantee.kind === "agent" ? PutBlockShare : PutBlockSpace;
      return done(blocks.share(name, grantee, parsed(shape.permission, permission)));
    },
  }),
  defineTool({
    name: "block_unshare",
    description: "End that at once.",
    input: z.object({ label, agent, space }),
    ...changes,
    execute: ({ label: name, ...given }, { blocks }) => done(blocks.unshare(name, granteeOf(given))),
  }),
  defineTool({
    name: "block_history",
    description: "Who changed a block of yours, and how, newest first.",
    input: z.object({ label, limit: z.int().min(1).max(50).default(10) }),
    ...reads,
    execute: ({ label: name, limit }, context) => ({ value: { versions: context.blocks.history(name, limit) } }),
  }),
];
