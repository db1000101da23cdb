import * as z from "zod";
import { PutGoal } from "../../../protocol/mind.ts";
import { type Plan, PutPlan } from "../../../protocol/plan.ts";
import { Label } from "../../../protocol/text.ts";
import { acts, defineTool, looks } from "../tool.ts";

/** The agent's memories, goals and plans. */
const many = 50;
const some = <Item extends z.ZodType>(item: Item) => z.array(item).min(1).max(many);

const brief = ({ id, name, status, nextRunAt }: Plan) => ({
  ...{ id, name, status },
  ...(nextRunAt === undefined ? {} : { nextRunAt }),
});

export const memoryStateTools = [
  defineTool({
    name: "set_memories",
    description: "Keep facts beyond this conversation. An empty value clears the key.",
    input: z.strictObject({ memories: some(z.strictObject({ key: Label, value: z.string() })) }),
    ...acts,
    execute({ memories }, { services }) {
      services.memories.setAll(memories);
      return { value: { success: true, keys: memories.map(({ key }) => key) } };
    },
  }),
  defineTool({
    name: "get_memories",
    description: "Read your memories: all of them, or those with these keys.",
    input: z.strictObject({ keys: z.array(Label).max(many).optional() }),
    ...looks,
    execute: ({ keys }, { services }) => ({
      value: { memories: services.memories.all(keys).map(({ updatedAt: _, ...memory }) => memory) },
    }),
  }),
  defineTool({
    name: "delete_memories",
    description: "Forget the memories with these keys.",
    input: z.strictObject({ keys: some(Label) }),
    ...acts,
    execute({ keys }, { services }) {
      for (const key of keys) services.memories.delete(key);
      return { value: { success: true } };
    },
  }),
  defineTool({
    name: "set_goals",
    description: "Set or change goals. What you leave out stays as it was; a new goal needs a description.",
    input: z.strictObject({ goals: some(z.strictObject({ id: Label, ...PutGoal.shape })) }),
    ...acts,
    execute({ goals }, { services }) {
      services.goals.setAll(goals);
      return { value: { success: true, goalIds: goals.map(({ id }) => id) } };
    },
  }),
  defineTool({
    name: "delete_goals",
    description: "Delete the goals with these ids.",
    input: z.strictObject({ goalIds: some(Label) }),
    ...acts,
    execute({ goalIds }, { services }) {
      for (const id of goalIds) services.goals.delete(id);
      return { value: { success: true } };
    },
  }),
  defineTool({
    name: "set_plans",
    description:
      "Wake yourself later: once (runAfter or scheduledAt) or again and again (cron). The instruction is all that you will be told then, so name in it the space and what to do. An id that exists is replaced.",
    input: z.strictObject({
      plans: some(
        z.strictObject({
          id: Label.optional().describe("Of your choice; left out, one is made."),
          ...PutPlan.shape,
          runAfter: PutPlan.shape.runAfter.describe('From now, in words: "30 minutes", "2 hours", "3 days".'),
          // A text that is no time is refused when it is read. A pattern in the schema would cost more tokens than all the rest.
          scheduledAt: z.string().optional().describe("ISO 8601; without an offset it is a time in timezone."),
          cron: PutPlan.shape.cron.describe("Five fields: minute hour day month weekday, in timezone."),
          timezone: PutPlan.shape.timezone.describe("IANA name, such as Asia/Riyadh; UTC if left out."),
        }),
      ),
    }),
    ...acts,
    execute: ({ plans }, context) => ({ value: { success: true, plans: context.plans.set(plans).map(brief) } }),
  }),
  defineTool({
    name: "get_plans",
    description: "Read your plans, with when each is due next.",
    input: z.strictObject({}),
    ...looks,
    execute: (_, context) => ({ value: { plans: context.plans.list() } }),
  }),
  defineTool({
    name: "delete_plans",
    description: "Delete the plans with these ids.",
    input: z.strictObject({ planIds: some(Label) }),
    ...acts,
    execute({ planIds }, context) {
      context.plans.delete(planIds);
      return { value: { success: true } };
    },
  }),
];
