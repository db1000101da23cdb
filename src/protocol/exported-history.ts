import { z } from "zod";
import { errorCodes } from "../shared/errors.ts";
import { Continuity } from "./agent.ts";
import { ContextLimits } from "./context-config.ts";
import { runId, spaceId } from "./ids.ts";
import { RunTrigger, Usage } from "./run.ts";
import { strictComponent, Timestamp } from "./text.ts";

/** The history of an exported agent: windows, runs, journal, summaries. */

/** Numbers of rows: counting on from the largest stays exact. */
const place = z.int().min(0).max(1_000_000_000_000);

/** A stretch of consciousness: what its inputs began with, and the first run whose cycle is whole in it. */
export const ExportedWindow = strictComponent("ExportedWindow", {
  id: place.min(1),
  instructions: z.string(),
  summary: z.string().nullable(),
  continuity: Continuity,
  firstRun: place.min(1),
  toldFrom: place.min(1),
  createdAt: Timestamp,
});

/** A run that has ended. Runs count 1, 2, 3 … without a gap; other rows name them by that number. */
export const ExportedRun = strictComponent("ExportedRun", {
  ordinal: place.min(1),
  id: runId.describe("In the imported agent it has an id of that agent's own"),
  status: z.enum(["completed", "skipped", "failed", "canceled", "absorbed"]),
  continuity: Continuity,
  endedBy: place.optional().describe("The number of the run that stopped or absorbed it"),
  trigger: RunTrigger,
  events: place.max(10_000).describe("How many events it took"),
  roots: z.array(z.string().max(200)).max(10_000),
  spaceIds: z.array(spaceId).max(10_000),
  windowId: place,
  journalFrom: place,
  journalTo: place,
  rests: z
    .array(z.strictObject({ from: place, to: place }))
    .optional()
    .describe("Where the journal belongs to other runs while it rested"),
  kept: z.boolean().describe("Its cycle is part of consciousness"),
  activeSpaceId: spaceId.nullable(),
  outcome: z.enum(["answered", "silent", "failed"]).optional(),
  reason: z.string().optional(),
  error: z.strictObject({ code: z.enum(errorCodes), message: z.string() }).optional(),
  prefixReuse: z.number().optional(),
  startedAt: Timestamp,
  completedAt: Timestamp,
});
export type ExportedRun = z.infer<typeof ExportedRun>;

const ExportedCall = z.looseObject({
  callId: z.string(),
  index: z.int(),
  toolName: z.string(),
  input: z.unknown(),
  invalid: z.looseObject({ code: z.enum(["tool_unknown", "tool_input_invalid"]), message: z.string() }).optional(),
});

const made = {
  sections: z.array(z.looseObject({ name: z.string(), tokens: z.number() })),
  dropped: z.array(z.looseObject({ name: z.string(), reason: z.string() })),
};
const shown = z.array(z.looseObject({ spaceId: z.string(), upTo: z.number() })).optional();

const assistantMeta = z.looseObject({
  kind: z.literal("assistant"),
  text: z.string(),
  calls: z.array(ExportedCall),
  usage: Usage,
  estimatedInput: z.number(),
  firstCycle: z.int(),
  windowId: z.int(),
  modelId: z.string(),
  input: z.looseObject({ ...made, tokens: z.int(), limits: ContextLimits }),
  durationMs: z.int(),
  finishReason: z.string(),
});
const resultMeta = z.looseObject({
  kind: z.literal("result"),
  callId: z.string(),
  toolName: z.string(),
  error: z.boolean(),
  activeSpaceId: z.string().nullable().optional(),
  shown,
});
const inboxMeta = z.looseObject({
  kind: z.literal("inbox"),
  lines: z.array(z.string()),
  history: z.array(z.looseObject({ id: z.string(), messages: z.number() })).optional(),
  made: z.looseObject(made).optional(),
  shown,
});
const previewMeta = z.discriminatedUnion("kind", [
  z.looseObject({ kind: z.literal("preview"), upTo: z.number() }),
  z.looseObject({ kind: z.literal("reminder") }),
  z.looseObject({ kind: z.literal("told"), section: z.enum(["shared_blocks", "activity"]) }),
]);

/** Inputs are composed of these messages as they are, so each holds words, calls and results, and no address to fetch. */
const words = z.strictObject({ type: z.literal("text"), text: z.string() });
const call = z.strictObject({
  type: z.literal("tool-call"),
  toolCallId: z.string(),
  toolName: z.string(),
  input: z.union([z.record(z.string(), z.json()), z.array(z.json())]),
});
const result = z.strictObject({
  type: z.literal("tool-result"),
  toolCallId: z.string(),
  toolName: z.string(),
  output: z.strictObject({ type: z.literal("json"), value: z.json() }),
});
/** A timeline may be given its space as a talk, in which it said something itself. */
const talk = z.strictObject({ role: z.enum(["user", "assistant"]), content: z.string() });
const said = z.strictObject({
  role: z.literal("assistant"),
  content: z.union([z.string(), z.array(z.discriminatedUnion("type", [words, call]))]),
});
const answered = z.strictObject({ role: z.literal("tool"), content: z.array(result).min(1) });
const begun = z.looseObject({ callId: z.string(), toolName: z.string() });

const journalRow = <Kind extends string, Content extends z.ZodType, Meta extends z.ZodType>(
  kind: Kind,
  content: Content,
  meta: Meta,
) =>
  z.strictObject({
    seq: place.min(1),
    run: place.min(1),
    step: place,
    kind: z.literal(kind),
    content: content.describe("A model message; of a `call`, which call was begun"),
    meta: meta.describe("What the runtime noted beside it"),
    createdAt: Timestamp,
  });

/** One message of the journal as it was given to the model or came from it; or a call that was begun. */
export const ExportedJournalRow = z
  .discriminatedUnion("kind", [
    journalRow("inbox", talk, inboxMeta),
    journalRow("preview", z.strictObject({ role: z.literal("user"), content: z.string() }), previewMeta.nullable()),
    journalRow("assistant", said, assistantMeta),
    journalRow("call", begun, z.null()),
    journalRow("result", answered, resultMeta),
  ])
  .meta({ id: "ExportedJournalRow" });

/** The ids of the calls that a message makes, and of those that it answers. */
export const callsIn = (content: unknown): { made: string[]; answered: string[] } => {
  const parts = said.safeParse(content).data?.content ?? [];
  return {
    made:
      typeof parts === "string" ? [] : parts.flatMap((part) => (part.type === "tool-call" ? [part.toolCallId] : [])),
    answered: answered.safeParse(content).data?.content.map((part) => part.toolCallId) ?? [],
  };
};

/** A summary of older cycles (`cycles`) or of a space's older messages (its id). */
export const ExportedSummary = strictComponent("ExportedSummary", {
  subject: z.union([z.literal("cycles"), spaceId]),
  text: z.string(),
  base: place,
  upTo: place,
  updatedAt: Timestamp,
});
