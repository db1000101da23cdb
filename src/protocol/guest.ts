import * as z from "zod";
import { runId } from "./ids.ts";
import { InboxItem, Run, RunToolCall } from "./run.ts";
import { strictComponent, Timestamp } from "./text.ts";

/** A guest is an agent whose thinking is done by a program that connects from outside. The program claims a run, acts in it, and ends it. */

export const thinksHere = 'this agent thinks here: set its runtime to "guest" to have a program think for it';

/** How long a claim holds after its last sign of life. */
export const claimSeconds = 60;

/** One call of a run, by the caller's own name for it: the same again is the same call. */
export const GuestKey = z.string().regex(/^[!-~]{1,128}$/, "must be 1–128 printable characters without blanks");

const lease = z.string().min(1).max(64).optional().meta({
  description:
    "What the claim answered: refused where another program has claimed the run since. Left out, it is not looked at",
});

const acting = { lease };

export const ClaimRun = strictComponent("ClaimRun", {
  waitSeconds: z.int().min(0).max(55).default(0).meta({ description: "How long to wait for a run" }),
});
export type ClaimRun = z.infer<typeof ClaimRun>;

/** `description` and `inputSchema` as a model is told them. */
export const DeclaredTool = z.object({
  name: z.string(),
  description: z.string(),
  inputSchema: z.record(z.string(), z.unknown()),
});
export type DeclaredTool = z.infer<typeof DeclaredTool>;

export const ClaimedRun = z
  .object({
    run: Run.meta({ description: "With what was done in it before, where it was claimed before" }),
    events: z.array(InboxItem).meta({ description: "What it is to answer, oldest first" }),
    input: z.object({
      instructions: z.string(),
      messages: z.array(z.unknown()).meta({ description: "As of the AI SDK: `role`, and `content` as text or parts" }),
    }),
    tools: z.array(DeclaredTool),
    lease: z.string(),
    leaseUntil: Timestamp,
  })
  .meta({ id: "ClaimedRun" });
export type ClaimedRun = z.infer<typeof ClaimedRun>;

export const GuestCall = strictComponent("GuestCall", {
  name: z.string().regex(/^[A-Za-z0-9_-]{1,160}$/, "must be a tool's name"),
  input: z.json().default({}),
  key: GuestKey,
  ...acting,
});
export type GuestCall = z.infer<typeof GuestCall>;

export const GuestCallAnswer = z
  .object({
    call: RunToolCall.meta({
      description:
        "`started`: it is not done yet, ask again with the same key. `waiting`: the run rests until it is answered, and can be claimed then",
    }),
    leaseUntil: Timestamp.nullable().meta({ description: "null where nobody holds the run any more" }),
  })
  .meta({ id: "GuestCallAnswer" });
export type GuestCallAnswer = z.infer<typeof GuestCallAnswer>;

/** Of a speech: what stands before its words. */
export const GuestSpeech = z.object({ key: GuestKey, ...acting });
export type GuestSpeech = z.infer<typeof GuestSpeech>;

/** A line of a speech. The last one says that all has come: a speech that is cut off is not said. */
export const SpeechLine = z.union([z.strictObject({ delta: z.string() }), z.strictObject({ done: z.literal(true) })]);

const tokens = z.int().min(0).max(100_000_000);
/** Tokens that the program used for the whole run. */
const ReportedUsage = z.strictObject({ inputTokens: tokens.default(0), outputTokens: tokens.default(0) });

const maxWordsCharacters = 16_000;
export const CompleteRun = strictComponent("CompleteRun", {
  summary: z
    .string()
    .max(maxWordsCharacters)
    .default("")
    .meta({ description: "What came of it, for the agent's own later runs" }),
  usage: ReportedUsage.optional().meta({
    description: "Left out, it is estimated. It counts where it is more than the estimate",
  }),
  ...acting,
});
export const SkipRun = strictComponent("SkipRun", { reason: z.string().max(1000).optional(), ...acting });
export const FailRun = strictComponent("FailRun", { error: z.string().min(1).max(500), ...acting });
export const RenewClaim = strictComponent("RenewClaim", acting);

/** How a guest ends its run. */
export type GuestEnd =
  | ({ kind: "complete" } & z.infer<typeof CompleteRun>)
  | ({ kind: "skip" } & z.infer<typeof SkipRun>)
  | ({ kind: "fail" } & z.infer<typeof FailRun>);

/** What a program sends on the one socket, each with an `id` of its own that the answer repeats. */
const asked = { id: z.string().min(1).max(128) };
const inRun = { ...asked, runId };
export const GuestFrame = z.discriminatedUnion("type", [
  /** It is answered by `claimed` once there is a run, whenever that is. */
  z.strictObject({ type: z.literal("claim"), ...asked }),
  z.strictObject({ type: z.literal("call"), ...inRun, ...GuestCall.shape }),
  /** Its words follow as `speech.delta`s of the same `id`, and `speech.done` is its end. */
  z.strictObject({ type: z.literal("speech"), ...inRun, ...GuestSpeech.shape }),
  z.strictObject({ type: z.literal("speech.delta"), ...asked, delta: z.string() }),
  z.strictObject({ type: z.literal("speech.done"), ...asked }),
  z.strictObject({ type: z.literal("complete"), ...inRun, ...CompleteRun.shape }),
  z.strictObject({ type: z.literal("skip"), ...inRun, ...SkipRun.shape }),
  z.strictObject({ type: z.literal("fail"), ...inRun, ...FailRun.shape }),
  z.strictObject({ type: z.literal("renew"), ...inRun, ...RenewClaim.shape }),
]);
export type GuestFrame = z.infer<typeof GuestFrame>;
