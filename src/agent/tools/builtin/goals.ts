import { z } from "zod";
import { PutGoal } from "../../../protocol/mind.ts";
import { Label } from "../../../protocol/text.ts";
import { acts, defineTool } from "../tool.ts";

const many = 50;

export const setGoals = defineTool({
  name: "set_goals",
  description: "Set or change goals. What you leave out stays as it was; a new goal needs a description.",
  input: z.object({
    goals: z
      .array(z.object({ id: Label, ...PutGoal.shape }))
      .min(1)
      .max(many),
  }),
  ...acts,
  execute({ goals }, context) {
    context.goals.setAll(goals);
    return { value: { success: true, goalIds: goals.map(({ id }) => id) } };
  },
});

export const deleteGoals = defineTool({
  name: "delete_goals",
  description: "Delete the goals with these ids.",
  input: z.object({ goalIds: z.array(Label).min(1).max(many) }),
  ...acts,
  execute({ goalIds }, context) {
    for (const id of goalIds) context.goals.delete(id);
    return { value: { success: true } };
  },
});
