import * as z from "zod";
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

/** One tool call as the model made it. `invalid` says why it cannot be executed. */
const CallRequest = z.object({
  callId: z.string(),
  index: z.int(),
  toolName: z.string(),
  input: z.unknown(),
  invalid: z.object({ code: z.enum(["tool_unknown", "tool_input_invalid"]), message: z.string() }).optional(),
});
export type CallRequest = z.infer<typeof CallRequest>;

/** A part that was left out of an input, and the rule that left it out. */
const Dropped = z.object({ name: z.string(), reason: z.string() });
export type Dropped = z.infer<typeof Dropped>;

/** The parts of an input, without its texts. Tokens are estimates before correction. */
const MadeOf = z.object({
  sections: z.array(z.object({ name: z.string(), tokens: z.number() })),
  dropped: z.array(Dropped),
});
export type MadeOf = z.infer<typeof MadeOf>;

/** The newest message of a space that the model was shown. `upTo` is its place in the log. */
const Shown = z.object({ spaceId: z.string(), upTo: z.number() });
export type Shown = z.infer<typeof Shown>;

/** So many messages of a space were left to its history, the model was told. */
const LeftToHistory = z.object({ id: z.string(), messages: z.number() });
export type LeftToHistory = z.infer<typeof LeftToHistory>;

const AssistantMeta = z.object({
  kind: z.literal("assistant"),
  text: z.string(),
  calls: z.array(CallRequest),
  usage: Usage,
  /** Estimated before correction, for the correction itself. */
  estimatedInput: z.number(),
  /** Ordinal of the first run whose cycle this step's input held; with the window it tells the exact input. */
  firstCycle: z.int(),
  windowId: z.int(),
  modelId: z.string(),
  /** The parts of the step's input, its corrected tokens, and the limits that it was composed within. */
  input: MadeOf.extend({ tokens: z.int(), limits: ContextLimits }),
  durationMs: z.int(),
  finishReason: z.string(),
});
export type AssistantMeta = z.infer<typeof AssistantMeta>;

const ResultMeta = z.object({
  kind: z.literal("result"),
  callId: z.string(),
  toolName: z.string(),
  error: z.boolean(),
  activeSpaceId: z.string().nullable().exactOptional(),
  /** The call asks for answers: the run waits for them once its step is done. */
  waits: z.literal(true).exactOptional(),
  /** It broke a tool rule and was not executed. */
  refused: z.literal(true).exactOptional(),
  shown: z.array(Shown).exactOptional(),
  /** The spaces whose messages it told. */
  reads: z.array(z.string()).exactOptional(),
});
export type ResultMeta = z.infer<typeof ResultMeta>;

/** The outcome of the questions that a run waited for. */
const Answers = z.object({
  /** The members who answered; their messages are in the input. */
  replies: z.array(z.object({ messageId: z.string(), name: z.string() })),
  /** Names of those who did not answer in time. */
  timedOut: z.array(z.string()),
  /** Names of those who left the space before they answered. */
  gone: z.array(z.string()).exactOptional(),
  /** Names of those who had not answered when the agent itself left the space. */
  apart: z.array(z.string()).exactOptional(),
  /** Names of those who had not answered when the space became confidential. */
  sealed: z.array(z.string()).exactOptional(),
});
export type Answers = z.infer<typeof Answers>;

const InboxMeta = z.object({
  kind: z.literal("inbox"),
  /** The events, a line each, and their ids in the same order. */
  lines: z.array(z.string()),
  eventIds: z.array(z.string()).exactOptional(),
  shown: z.array(Shown).exactOptional(),
  history: z.array(LeftToHistory).exactOptional(),
  /** The parts of a timeline's input, which is journaled as it was composed. In the first of its messages. */
  made: MadeOf.exactOptional(),
  /** The members who answered, if the run goes on after a wait. */
  answers: Answers.exactOptional(),
  /** The input before it was refused as too long. */
  shortened: z.literal(true).exactOptional(),
  /** The parts that did not fit a cycle's beginning, which is composed anew with each step. */
  dropped: z.array(Dropped).exactOptional(),
});
export type InboxMeta = z.infer<typeof InboxMeta>;

/** A message that tells a living agent of others. */
const ToldSection = z.enum(["shared_blocks", "activity"]);
export type ToldSection = z.infer<typeof ToldSection>;

const PreviewMeta = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("preview"), upTo: z.number() }),
  /** An exit was answered with the tool rule that it broke. */
  z.object({ kind: z.literal("reminder") }),
  /** It stands beside the inbox message; what of it did not fit. */
  z.object({
    kind: z.literal("told"),
    section: ToldSection,
    dropped: z.array(Dropped).exactOptional(),
  }),
]);

/** What the runtime notes beside a row of the journal. */
export type JournalMeta = AssistantMeta | ResultMeta | InboxMeta | z.infer<typeof PreviewMeta>;

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
    journalRow("inbox", talk, InboxMeta),
    journalRow("preview", z.strictObject({ role: z.literal("user"), content: z.string() }), PreviewMeta.nullable()),
    journalRow("assistant", said, AssistantMeta),
    journalRow("call", begun, z.null()),
    journalRow("result", answered, ResultMeta),
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
