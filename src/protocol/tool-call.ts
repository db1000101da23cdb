import * as z from "zod";
import { entityId, spaceId, toolCallId } from "./ids.ts";
import { component, strictComponent, Timestamp } from "./text.ts";

export const ToolCallStatus = z.enum(["running", "requires_action", "complete", "error", "expired", "canceled"]);

/** One thing that people see before they approve a call. Invisible characters of the text are shown as escapes. */
export const ShownField = component("ShownField", {
  path: z.string().meta({
    description:
      "`tool`, `target` (where it goes), `readers` (who reads there what leaves a confidential space), a place in the request that its config writes (`request.url`), or in the input (`input.to`)",
  }),
  text: z.string().meta({ description: "A value as JSON. A text stands bare, but in quotes where it reads like JSON" }),
  hidden: z.int().meta({ description: "How many invisible characters path and text hold" }),
});
export type ShownField = z.infer<typeof ShownField>;

const hashPattern = /^[0-9a-f]{64}$/;

/** The answer that a call waits for from people, and their answers so far. */
export const AwaitedAnswer = component("AwaitedAnswer", {
  kind: z.enum(["approval", "answer"]),
  /** The people who may answer; everyone in the space if left out. */
  approvers: z.array(entityId).optional(),
  /** Approvals that are needed; 1 for an answer. */
  quorum: z.int(),
  /** One for each who answered, oldest first. */
  answers: z.array(
    z.object({
      entityId,
      name: z.string(),
      approved: z.boolean().optional(),
      note: z.string().optional(),
      /** For an approval: the hash of the arguments that this person was shown. */
      inputHash: z.string().optional(),
      /** The one who made the answering session, if it was not the person. */
      impersonatedBy: entityId.optional(),
      at: Timestamp,
    }),
  ),
  /** For an approval: all that happens if it is given, in order. A client shows every one of them. */
  shown: z.array(ShownField).optional(),
  /** For an approval: SHA-256 of the arguments' canonical JSON (RFC 8785). Who approves sends it back. */
  inputHash: z.string().optional(),
  /** The JSON Schema that an answer must match. */
  schema: z.record(z.string(), z.json()).optional(),
  expiresAt: Timestamp,
});
export type AwaitedAnswer = z.infer<typeof AwaitedAnswer>;

/** Where words are said that leave a confidential space, and who reads them there, as people are asked. */
export const ToolCallRelease = component("ToolCallRelease", {
  spaceId,
  name: z.string(),
  readers: z.string().meta({ description: "How many people, agents and services are in that space, in words" }),
  confidential: z
    .boolean()
    .meta({ description: "`false`: that space is open, so its agents know the words everywhere" }),
});
export type ToolCallRelease = z.infer<typeof ToolCallRelease>;

/** A tool call that shows in a space. `complete`, `error`, `expired` and `canceled` are final. */
export const ToolCall = component("ToolCall", {
  id: toolCallId,
  name: z.string(),
  input: z.unknown(),
  output: z.unknown().optional(),
  error: z.object({ code: z.string(), message: z.string() }).optional(),
  status: ToolCallStatus,
  /** Set for words that people of a confidential space were asked to let out. */
  release: ToolCallRelease.optional(),
  /** Set while, and after, people were asked. */
  awaits: AwaitedAnswer.optional(),
});
export type ToolCall = z.infer<typeof ToolCall>;

/** A person's answer to a call that waits: a result, or why there is none. */
export const ToolAnswer = z
  .union([
    z.strictObject({ result: z.json() }),
    z.strictObject({ error: z.strictObject({ message: z.string().min(1).max(1000) }) }),
  ])
  .meta({ id: "ToolAnswer" });
export type ToolAnswer = z.infer<typeof ToolAnswer>;

/** The result that answers an approval. */
export const ApprovalResult = z.strictObject({
  approved: z.boolean(),
  note: z.string().max(1000).optional(),
  /** The hash of what the person was shown: needed to approve. */
  inputHash: z.string().regex(hashPattern, "must be the call's awaits.inputHash: 64 hexadecimal digits").optional(),
});

/** A call of an `external` tool that waits for whoever asks for it, claims it and answers it. */
export const WaitingToolCall = component("WaitingToolCall", {
  toolCallId,
  agentId: entityId,
  name: z.string(),
  input: z.unknown(),
  createdAt: Timestamp,
  /** The deadline of the answer. */
  dueAt: Timestamp,
  /** The server that claimed it, and until when no other may. */
  claim: z.object({ holder: z.string(), until: Timestamp }).optional(),
  /** The claimer sends it as `Colloquy-Root` with all that the call sets off here. So the chain stays one. */
  root: z.string().optional(),
});
export type WaitingToolCall = z.infer<typeof WaitingToolCall>;

export const ClaimToolCall = strictComponent("ClaimToolCall", {
  /** A name for who claims, so that the same one may claim again. */
  holder: z.string().min(1).max(128),
  leaseSeconds: z.int().min(1).max(3600).default(60),
});
export type ClaimToolCall = z.infer<typeof ClaimToolCall>;

/** The state of an answered call. */
export const AnsweredToolCall = component("AnsweredToolCall", {
  toolCallId,
  status: ToolCallStatus,
  created: z.boolean(),
});
export type AnsweredToolCall = z.infer<typeof AnsweredToolCall>;
