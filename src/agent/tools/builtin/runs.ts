import * as z from "zod";
import { ColloquyError } from "../../../shared/errors.ts";
import { acts, defineTool, looks } from "../tool.ts";

/**
 * Silence. As the first step's only call it ends the cycle and rolls it back. The run does that itself before any call
 * is executed, so a skip that is executed came too late.
 */
export const skip = defineTool({
  name: "skip",
  description:
    "Say nothing and forget this cycle, when nothing in the inbox needs you. Valid only as your first and only call.",
  input: z.strictObject({ reason: z.string().max(500).optional().describe("Why silence is right, in a few words.") }),
  ...looks,
  endsRun: "own",
  only: "consciousness",
  execute() {
    throw new ColloquyError("skip_too_late", "skip is valid only as the first step's only call; just end instead");
  },
});

export const RunRef = z.strictObject({ runId: z.string().describe("Id of one of your own active runs.") });

const endsOther = { ...acts, endsRun: "other", only: "timeline" } as const;

export const runTools = [
  skip,
  defineTool({
    name: "get_my_runs",
    description:
      "Your runs, newest first: what began each, whole, all that it did with the results, and how far it is.",
    input: z.strictObject({
      status: z.string().exactOptional().describe("Only those of this status, such as running."),
      before: z.string().exactOptional().describe("Id of a run: only those that began before it."),
      runId: z.string().exactOptional().describe("Only this one."),
      actionsBefore: z.int().min(0).exactOptional().describe("Only its first so many actions, where more did not fit."),
      offset: z.int().min(0).default(0).describe("Where the part of a value that was cut begins, in characters."),
      limit: z.int().min(1).max(50).default(10),
    }),
    ...looks,
    execute: (asked, context) => {
      const { reads, ...value } = context.runs.list(asked);
      return { value, reads };
    },
  }),
  defineTool({
    name: "stop_run",
    description: "End another active run of yours at once. Nothing more of it appears.",
    input: RunRef,
    ...endsOther,
    async execute({ runId }, context) {
      await context.runs.stop(runId);
      return { value: { success: true } };
    },
  }),
  defineTool({
    name: "absorb_run",
    description:
      "End another active run of yours at once and take over what it was for. Returns its trigger and what it did.",
    input: RunRef,
    ...endsOther,
    execute: async ({ runId }, context) => {
      const { run, reads } = await context.runs.absorb(runId);
      return { value: { success: true, ...run }, reads };
    },
  }),
];
