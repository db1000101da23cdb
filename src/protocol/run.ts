import * as z from "zod";
import { errorCodes } from "../shared/errors.ts";
import { BlockType } from "./block.ts";
import { ContextLimits } from "./context-config.ts";
import { entityId, eventId, runId, spaceId, toolCallId } from "./ids.ts";
import { component, Timestamp } from "./text.ts";

const eventType = z.enum(["space_message", "plan", "service", "tool_result"]);

/** The result of a run for the people that it answered, and why it was silent or failed. */
export const RunOutcome = z.enum(["answered", "silent", "failed"]);
export type RunOutcome = z.infer<typeof RunOutcome>;

/** Another space, whose messages a run's tools told it: people see that, and as much of it as that space's own setting tells. */
export const ReadSpace = z
  .object({
    spaceId: spaceId.optional().describe("Left out where its `shareOrigin` is `none`"),
    name: z.string().optional().describe("Where its `shareOrigin` is `name` or `text`"),
    members: z.int().optional().describe("With its name: how many were in it, agents too"),
  })
  .meta({ id: "ReadSpace" });
export type ReadSpace = z.infer<typeof ReadSpace>;
/** At most so many of the other spaces that a run read are told. */
export const maxToldReads = 50;
export const reads = z
  .array(ReadSpace)
  .max(maxToldReads)
  .optional()
  .describe("The other spaces that the agent's run had read by then. Compare them with the caller's own");

export const runResult = { outcome: RunOutcome.optional(), reason: z.string().optional(), reads };

export const RunStatus = z.enum([
  "running",
  "waiting_tool",
  "waiting_reply",
  "completed",
  "skipped",
  "failed",
  "canceled",
  "absorbed",
]);
export type RunStatus = z.infer<typeof RunStatus>;

export const Usage = z
  .object({ inputTokens: z.int(), outputTokens: z.int(), estimated: z.boolean() })
  .meta({ id: "Usage", description: "Billed tokens, or our estimate where the provider told none" });
export type Usage = z.infer<typeof Usage>;

export const RunToolCall = z.object({
  id: toolCallId,
  name: z.string(),
  input: z.unknown(),
  output: z.unknown().optional(),
  /** `waiting`: people or a server have it, and the run waits for them. */
  status: z.enum(["pending", "started", "waiting", "complete", "error"]),
});

/** The parts of an input: its tokens, and what was left out by which rule. */
const madeOf = {
  tokens: z.int().describe("Estimated, corrected by what the model was billed before"),
  dropped: z.array(z.object({ name: z.string(), reason: z.string() })),
  limits: ContextLimits,
};

const StepInput = component("StepInput", {
  continues: z
    .object({ step: z.int(), messages: z.int() })
    .optional()
    .describe(
      "The input begins as that of this earlier step of the answer did: with its instructions and so many of its messages. Left out where the input is given whole",
    ),
  instructions: z.string().optional(),
  messages: z.array(z.unknown()).describe("All of them, or those that follow where it `continues`"),
  sections: z.array(z.object({ name: z.string(), tokens: z.int() })),
  ...madeOf,
});
export type StepInput = z.infer<typeof StepInput>;

export const RunStep = z.object({
  index: z.int(),
  /** The exact input of the step, as it was sent. Only in `GET runs/:runId`. */
  input: StepInput.optional(),
  text: z.string(),
  toolCalls: z.array(RunToolCall),
  usage: Usage,
  durationMs: z.int(),
});
export type RunStep = z.infer<typeof RunStep>;

/** The cause of a run: its newest event, and how many events it took. */
export const RunTrigger = z.object({
  type: eventType,
  eventId,
  eventCount: z.int(),
  spaceId: spaceId.optional(),
  senderName: z.string().optional(),
  text: z.string().optional(),
});
export type RunTrigger = z.infer<typeof RunTrigger>;

export const Run = component("Run", {
  id: runId,
  agentId: entityId,
  status: RunStatus,
  trigger: RunTrigger,
  roots: z.array(z.string()),
  spaceId: spaceId.optional(),
  steps: z.array(RunStep),
  nextStep: z
    .int()
    .optional()
    .describe("There are more steps than one answer holds: ask again with this as `fromStep`"),
  ...runResult,
  error: z.object({ code: z.enum(errorCodes), message: z.string() }).optional(),
  endedBy: runId.optional().describe("The run of the same agent that stopped or absorbed it"),
  absorbed: z
    .array(runId)
    .optional()
    .describe("The runs that it absorbed: their events, and those of runs that they had absorbed, became its own"),
  /** Share of the last input before this run that its first input repeats as its prefix; 1 is all of it. */
  prefixReuse: z.number().optional(),
  startedAt: Timestamp,
  completedAt: Timestamp.optional(),
});
export type Run = z.infer<typeof Run>;

export const InboxItem = component("InboxItem", {
  eventId,
  type: eventType,
  data: z.unknown(),
  wakes: z.boolean(),
  attempts: z.int(),
  status: z.enum(["pending", "taken", "dead"]),
  lastError: z.object({ code: z.enum(errorCodes), message: z.string() }).optional(),
  receivedAt: Timestamp,
});
export type InboxItem = z.infer<typeof InboxItem>;

/** The input that the next run would have. */
export const ContextView = component("ContextView", {
  trigger: RunTrigger.optional().describe(
    "What the next run would begin with; left out where nothing waits, and the input is as if a service event without content had come",
  ),
  instructions: z.string(),
  messages: z.array(z.unknown()),
  tools: z.array(z.string()).describe("What it may call, by name, in the order in which they are declared"),
  blocks: z
    .array(z.object({ label: z.string(), type: BlockType, ownerId: z.string().optional(), tokens: z.int() }))
    .describe("The blocks of memory that stand in it, wherever they do; of one that another agent shares, that agent"),
  sections: z.array(z.object({ name: z.string(), tokens: z.int(), text: z.string() })),
  ...madeOf,
  prefixReuse: z
    .number()
    .optional()
    .describe("Share of the last input that this one repeats as its prefix; 1 is all of it"),
});
export type ContextView = z.infer<typeof ContextView>;
