import { z } from "zod";
import { type Plan, PutPlan } from "../../../protocol/plan.ts";
import { Label } from "../../../protocol/text.ts";
import { acts, defineTool, looks } from "../tool.ts";

const many = 50;

const brief = ({ id, name, status, nextRunAt }: Plan) => ({
  id,
  name,
  status,
  ...(nextRunAt === undefined ? {} : { nextRunAt }),
});

const setPlans = defineTool({
  name: "set_plans",
  description:
    "Wake yourself later: once (runAfter or scheduledAt) or again and again (cron). The instruction is all that you will be told then, so name in it the space and what to do. An id that exists is replaced.",
  input: z.object({
    plans: z
      .array(
        z.object({
          id: Label.optional().describe("Of your choice; left out, one is made."),
          ...PutPlan.shape,
          runAfter: PutPlan.shape.runAfter.describe('From now, in words: "30 minutes", "2 hours", "3 days".'),
          // What is no time is refused in words where it is read: its pattern would cost more than all the rest.
          scheduledAt: z.string().optional().describe("ISO 8601; without an offset it is a time in timezone."),
          cron: PutPlan.shape.cron.describe("Five fields: minute hour day month weekday, in timezone."),
          timezone: PutPlan.shape.timezone.describe("IANA name, such as Asia/Riyadh; UTC if left out."),
        }),
      )
      .min(1)
      .max(many),
  }),
  ...acts,
  execute({ plans }, context) {
    return { value: { success: true, plans: context.plans.set(plans).map(brief) } };
  },
});

const getPlans = defineTool({
  name: "get_plans",
  description: "Read your plans, with when each is due next.",
  input: z.object({}),
  ...looks,
  execute(_, context) {
    return { value: { plans: context.plans.list() } };
  },
});

const deletePlans = defineTool({
  name: "delete_plans",
  description: "Delete the plans with these ids.",
  input: z.object({ planIds: z.array(Label).min(1).max(many) }),
  ...acts,
  execute({ planIds }, context) {
    context.plans.delete(planIds);
    return { value: { success: true } };
  },
});

export const planTools = [setPlans, getPlans, deletePlans];
