import { z } from "zod";
import { acts, defineTool, looks } from "../tool.ts";

export const RunRef = z.object({ runId: z.string().describe("Id of one of your own active runs.") });

const getMyRuns = defineTool({
  name: "get_my_runs",
  description: "List your runs, newest first: what began them and how far they are.",
  input: z.object({
    status: z.string().optional().describe("Only those of this status, such as running."),
    limit: z.int().min(1).max(50).default(10),
  }),
  ...looks,
  only: "timeline",
  execute: ({ status, limit }, context) => ({ value: { runs: context.runs.list(status, limit) } }),
});

const stopRun = defineTool({
  name: "stop_run",
  description: "End another active run of yours at once. Nothing more of it appears.",
  input: RunRef,
  ...acts,
  endsRun: "other",
  only: "timeline",
  async execute({ runId }, context) {
    await context.runs.stop(runId);
    return { value: { success: true } };
  },
});

const absorbRun = defineTool({
  name: "absorb_run",
  description:
    "End another active run of yours at once and take over what it was for. Returns its trigger and what it did.",
  input: RunRef,
  ...acts,
  endsRun: "other",
  only: "timeline",
  execute: async ({ runId }, context) => ({ value: { success: true, ...(await context.runs.absorb(runId)) } }),
});

export const runTools = [getMyRuns, stopRun, absorbRun];
