import * as z from "zod";
import { CreateBlock, PutBlockShare, PutBlockSpace } from "../../../protocol/block.ts";
import { BlockOperations, maxOperations, operationNames } from "../../../protocol/block-operation.ts";
import { type BlockSchema, Viewport } from "../../../protocol/block-schema.ts";
import { ColloquyError } from "../../../shared/errors.ts";
import { quoteJson } from "../../../shared/quote.ts";
import { unsoundness } from "../../../shared/sound-json.ts";
import { maxToolOutputTokens } from "../../bounds.ts";
import { isExposure } from "../../memory/blocks/exposing.ts";
import { ownPrincipal } from "../../memory/blocks/shared-blocks.ts";
import { fieldLines } from "../../memory/documents/declared-fields.ts";
import { permissionRefusal, ranks, verdictOn } from "../../memory/documents/permission.ts";
import { isPartial, render } from "../../memory/documents/render.ts";
import { estimateText, firstFitting, pageOf, sizeOf } from "../../tokens.ts";
import { asUnknownOutcome } from "../outcome.ts";
import {
  type AskedApproval,
  type CallContext,
  defineTool,
  invalidInput,
  parseInput,
  type ToolContext,
  type ToolServices,
} from "../tool.ts";
import { author, changes, done, from, label, ownBlock, reads } from "./block-parts.ts";
import { pinningTools } from "./kept-blocks.ts";

/**
 * Tools for what blocks of memory hold, and who may read them. Their declarations are short, since every step of every
 * agent pays for them. The protocol's own schemas read the full input, and refuse it in their words.
 */
/** How many characters of a block are shown after an edit. */
const maxEcho = 1000;
/** Tokens of a result beside the content, and of a schema there. */
const frameTokens = 200;
const schemaTokens = 3000;
/** How long people may take to agree to an edit. */
const consentMinutes = 24 * 60;

const parsed = <Schema extends z.ZodType>(schema: Schema, input: unknown): z.infer<Schema> => {
  const issue = unsoundness(input);
  if (issue) throw invalidInput([issue]);
  return parseInput(schema, input);
};

type Place = { startLine?: number | undefined; offset?: number | undefined; lines?: number | undefined };

/** Room for what a result holds beside `taken` tokens. */
const roomFor = (context: ToolContext, taken = 0): number =>
  Math.max(1, Math.min(maxToolOutputTokens, context.roomTokens() - frameTokens) - taken);

/** As many lines of it as have room; of a line that has none, its beginning. `readOn` says what reads the rest. */
const pageAt = (
  text: string,
  room: number,
  { startLine = 1, offset = 0, lines }: Place,
  readOn: (next: Place) => string,
) => {
  const all = text.split("\n");
  const refused = (message: string) => new ColloquyError("tool_input_invalid", message);
  const first = all[startLine - 1];
  if (first === undefined) throw refused(`startLine: it has ${all.length} lines, so ${all.length} is the last`);
  const { length } = first;
  if (offset > 0 && offset >= length) throw refused(`offset: line ${startLine} has ${length} characters, from 0`);
  const begun = first.slice(offset).toWellFormed();
  const wanted = [begun, ...all.slice(startLine, lines && startLine - 1 + lines)];
  const fit = sizeOf(wanted.join("\n")) <= room ? wanted : firstFitting(wanted, room, sizeOf);
  const shown = fit.length > 0 ? fit : [pageOf(begun, room, sizeOf)];
  const content = shown.join("\n");
  const end = offset + (shown[0]?.length ?? 0);
  const after = startLine + shown.length;
  const next = end < length ? { startLine, offset: end } : { startLine: after };
  const isEnd = end === length && after > all.length;
  if (isEnd && startLine === 1 && offset === 0) return { content };
  const part = `characters ${offset} to ${end} of ${length} of line ${startLine}`;
  const what = end < length || offset > 0 ? part : `${shown.length} of ${all.length} lines`;
  return { content, note: `cut: ${what}; ${isEnd ? "that is the end" : readOn(next)}` };
};

/** A call of block_load and its input, in words. */
const loadWith = (input: object): string => {
  const given = Object.entries(input).filter(([, value]) => value !== undefined);
  return `block_load with ${given.map(([name, value]) => `${name}: ${quoteJson(value)}`).join(", ")}`;
};

const Operations = z.object({ operations: BlockOperations });

/** The schema of a structured block. Its fields in words, if the schema has no room, and what reads it whole. */
const schemaOf = (schema: BlockSchema, room: number) => {
  if (schema.type === "text") return {};
  const most = Math.min(schemaTokens, room / 2);
  const wholeSchema = "block_load with schema: true";
  const told = [{ schema }, { fields: fieldLines(schema), wholeSchema }];
  return told.find((each) => estimateText(JSON.stringify(each)) <= most) ?? { wholeSchema };
};

const BlockEdit = z.strictObject({
  label,
  from,
  operations: z
    .array(z.looseObject({ op: z.enum(operationNames) }))
    .min(1)
    .max(maxOperations),
  onVersion: z.int().min(0).optional().describe("The version that you read: what others changed since is merged."),
});

type Edit = z.infer<typeof BlockEdit>;

const edited = async (
  { label: name, from: owner, operations, onVersion }: Edit,
  { services, consented, callId, signal, sources }: CallContext,
) => {
  const by = ownPrincipal(services, consented);
  const edit = { ...parsed(Operations, { operations }), onVersion, by, callId, sources: sources?.() };
  const editing = asUnknownOutcome(services.sharedBlocks.edit(name, edit, signal, owner));
  const { version, results, rendered } = await editing;
  const shown = rendered.length <= maxEcho ? { content: rendered } : {};
  return { success: true, version, results: results.map(({ message }) => message), ...shown };
};

/** Operations that do the same wherever the block stands. All others are pinned to the version that people are shown. */
const anywhere = /^(?:set_text|set_field|increment|push_item|append_\w+)$/;

/**
 * The approval that these operations need; undefined where none. Throws where no consent can allow them. Of another agent's
 * block its `target` says whose it is: a label, or a name, may come to mean another's.
 */
const approvalOf = async (edit: Edit, { services, signal }: CallContext): Promise<AskedApproval | undefined> => {
  const { label: name, from: owner, operations } = edit;
  const ops = parsed(Operations, { operations }).operations.map(({ op }) => op);
  const shared = services.sharedBlocks.findToChange(name, owner);
  const { permission } = shared ?? services.blocks.get(name);
  const refused = ops.find((op) => verdictOn(op, permission) === "refused");
  if (refused) throw permissionRefusal(refused, permission);
  if (ops.every((op) => verdictOn(op, permission) === "allowed")) return undefined;
  const target = shared && `a block of ${quoteJson(shared.ownerName)} (${shared.ownerId})`;
  const { version, partnerEntityId: partner } = await services.sharedBlocks.load(name, signal, { from: owner });
  const input = ops.every((op) => anywhere.test(op)) ? undefined : { ...edit, onVersion: edit.onVersion ?? version };
  const asked = { required: true, quorum: 1, expiresInMinutes: consentMinutes, target, input };
  if (permission === "Human") return asked;
  if (!partner) throw new ColloquyError("forbidden", `"${name}" needs its partner's consent, and names no partner`);
  return { ...asked, approvers: [partner] };
};

/** The block may be another one by now, or have another partner. */
const agreed = async (input: Edit, call: CallContext) => {
  const asked = await approvalOf(input, call);
  const { createdAt } = await call.services.sharedBlocks.load(input.label, call.signal, { from: input.from });
  const isPartners = !asked?.approvers || asked.approvers.some((id) => call.approvedBy?.includes(id));
  const wasMadeSince = Date.parse(createdAt) > (call.askedAt ?? Number.POSITIVE_INFINITY);
  if (isPartners && asked?.target === call.target && !wasMadeSince) return edited(input, call);
  const what = isPartners ? "is another block" : "has another partner";
  throw new ColloquyError("approval_changed", `not done, "${input.label}" ${what} by now: ask again`);
};

const agent = z.string().min(1).max(64).optional().describe("Name or id of an agent of your spaces.");
const space = z.string().min(1).max(64).optional().describe("Or name or id of a space of yours: its people.");

/** The id of another agent in its spaces, or of one of its spaces, by name or id. */
const granteeOf = (
  { identity, spaces }: ToolServices,
  { agent, space }: { agent?: string | undefined; space?: string | undefined },
): string => {
  const wanted = agent ?? space;
  if (wanted === undefined || (agent !== undefined && space !== undefined)) {
    throw new ColloquyError("tool_input_invalid", "give either agent or space");
  }
  const self = identity.get().id;
  const members = spaces.mine().flatMap((each) => each.members);
  const others = members.filter(({ id, type }) => type === "agent" && id !== self);
  const named = (space === undefined ? others : spaces.mine()).filter(
    ({ id, name }) => id === wanted || name === wanted,
  );
  const [only, ...more] = new Set(named.map(({ id }) => id));
  if (only !== undefined && more.length === 0) return only;
  const quoted = JSON.stringify(wanted);
  if (agent !== undefined) throw new ColloquyError("not_found", `there is no other agent ${quoted} in your spaces`);
  if (only === undefined) throw new ColloquyError("not_found", `you are in no space ${quoted}`);
  const ids = [only, ...more].join(", ");
  throw new ColloquyError("conflict", `several of your spaces are named ${quoted}: say which, ${ids}`);
};

/** Throws `forbidden` where only who reads a confidential space may share the block so: an agent's word is anybody's. */
const sharedOpenly = async (shared: Promise<object>): Promise<void> => {
  if (!isExposure(await shared)) return;
  const why = 'the block takes words of confidential spaces (confidential: "allowed"), and these would write it then';
  throw new ColloquyError("forbidden", `${why}: share it ReadOnly, or have an admin who is in these spaces share it`);
};

export const blockTools = [
  defineTool({
    name: "block_load",
    description: "Read a block of your memory, or of another agent's that shares it with you.",
    input: z.strictObject({
      ...{ label, from, version: z.int().min(1).optional().describe("An earlier version.") },
      startLine: z.int().min(1).optional().describe("Reads all that it holds, whatever is shown, from this line."),
      offset: z.int().min(0).optional().describe("Where in that line to begin, in characters."),
      lines: z.int().min(1).optional(),
      schema: z.boolean().optional().describe("Its whole schema instead."),
    }),
    ...reads,
    async execute({ label: name, startLine, offset, lines, schema: isOfSchema, ...view }, context) {
      const { blocks, sharedBlocks } = context.services;
      const block = await sharedBlocks.load(name, context.signal, view);
      const { type, permission, description, schema, version, value, rendered, sharedFrom } = block;
      if (sharedFrom === undefined && view.version === undefined) blocks.touch(name);
      const owner = sharedFrom === undefined ? {} : { sharedFrom: sharedFrom.agentName };
      const place = { startLine, offset, lines };
      const readOn = (next: Place) => `${loadWith({ ...view, schema: isOfSchema, ...next })} reads on`;
      if (isOfSchema) {
        const text = JSON.stringify(schema, null, 1);
        return { value: { label: name, ...owner, ...pageAt(text, roomFor(context), place, readOn) } };
      }
      const hidesSome = isPartial(schema, value) && Object.values(place).every((each) => each === undefined);
      const declared = schemaOf(schema, context.roomTokens());
      const room = roomFor(context, estimateText(JSON.stringify(declared)));
      const readAll = `${loadWith({ ...view, startLine: 1 })} reads all that it holds`;
      const page = hidesSome
        ? pageAt(rendered, room, {}, () => readAll)
        : pageAt(render(schema, value, { whole: true }), room, place, readOn);
      return {
        value: {
          ...{ label: name, type, permission, description, version, ...owner, ...declared },
          ...(hidesSome ? { hidden: `it holds more than is shown: ${readAll}` } : {}),
          ...page,
        },
      };
    },
  }),
  defineTool({
    name: "block_edit",
    writesBlock: true,
    description: `Change a block, all operations or none. Each is {op, …} with:
text: set_text {text}, append_text {text}, replace_text {old, new, mode?: first|all|nth|regex, n?}, edit_range {startLine, endLine, text}, patch {patch: unified diff}
map: set_field {field, value}, append_to_list {field, value}, remove_from_list {field, index|value}, increment {field, by}
list: push_item {item}, insert_item {index, item}, set_item {index, item}, delete_item {index}, move_item {from, to}
log: append_log_entry {entry}
any: undo {}, redo {} of your own edits. In a composite add section. Items count from 0, lines from 1.`,
    input: BlockEdit,
    ...changes,
    foundBy: ["label", "from", "operations", "op"],
    consent: { approval: approvalOf, carryOut: agreed },
    execute: async (input, context) => ({ value: await edited(input, context) }),
  }),
  defineTool({
    name: "block_create",
    writesBlock: true,
    description:
      "Make a block: core is always before you, working when pinned, archival and log are found by search. schema: text {viewport?}, map {fields: [{name, type: text|number|boolean|list|counter|timestamp, description?, required?, default?}]}, list {itemSchema?, maxItems?}, log {displayLimit?, entryFields?} or composite {sections: [{name, schema}]}; text if left out.",
    input: z.strictObject({
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
    foundBy: ["label", "type"],
    async execute(input, { services, callId, sources }) {
      const block = parsed(CreateBlock, input);
      const { version } = await services.blocks.create(block, author(services), callId, sources?.());
      return { value: { success: true, label: input.label, version } };
    },
  }),
  ...pinningTools,
  defineTool({
    name: "block_viewport",
    description: "Show only some lines of a long text block; all of it if you leave them out.",
    input: z.strictObject({
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
      const { services } = context;
      ownBlock(services, name);
      const { rendered } = await services.blocks.update(name, { viewport, section }, author(services));
      const readAll = () => `${loadWith({ startLine: 1 })} reads all that it holds`;
      return { value: { success: true, ...pageAt(rendered, roomFor(context), {}, readAll) } };
    },
  }),
  defineTool({
    name: "block_share",
    description:
      "Let another agent, or the people of a space, read a block of yours, and change it as the permission says.",
    input: z.strictObject({
      label,
      agent,
      space,
      permission: z.string().optional().describe("Append for agents and ReadWrite for people, if left out."),
    }),
    ...changes,
    execute({ label: name, permission: wanted, ...given }, { services, signal }) {
      const granteeId = granteeOf(services, given);
      const { shape } = given.space === undefined ? PutBlockShare : PutBlockSpace;
      const { permission } = parsed(z.object({ permission: shape.permission }), { permission: wanted });
      const own = ownBlock(services, name).permission;
      if (ranks[permission] > ranks[own]) {
        throw new ColloquyError("forbidden", `you may not give ${permission} of "${name}": the block has ${own}`);
      }
      return done(sharedOpenly(services.sharedBlocks.share(name, { granteeId, permission }, signal, [])));
    },
  }),
  defineTool({
    name: "block_unshare",
    description: "End that at once.",
    input: z.strictObject({ label, agent, space }),
    ...changes,
    async execute({ label: name, ...given }, { services, replayed, signal }) {
      try {
        ownBlock(services, name);
        await services.sharedBlocks.unshare(name, granteeOf(services, given), signal);
      } catch (error) {
        // In a replay, a share that is not there any more was taken back before the cut.
        if (!(replayed && error instanceof ColloquyError && error.code === "not_found")) throw error;
      }
      return { value: { success: true } };
    },
  }),
  defineTool({
    name: "block_history",
    description: "Who changed a block of yours, and how, newest first.",
    input: z.strictObject({ label, limit: z.int().min(1).max(50).default(10) }),
    ...reads,
    execute: ({ label: name, limit }, { services }) => ({
      value: { versions: services.blocks.history(ownBlock(services, name).label, undefined, limit) },
    }),
  }),
];
