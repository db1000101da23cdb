import { z } from "zod";
import { PutGoal } from "../../../protocol/mind.ts";
import { Label } from "../../../protocol/text.ts";
import { acts, defineTool, looks } from "../tool.ts";

const many = 50;

const setMemories = defineTool({
  name: "set_memories",
  description: "Keep facts beyond this conversation. An empty value clears the key.",
  input: z.object({
    memories: z
      .array(z.object({ key: Label, value: z.string() }))
      .min(1)
      .max(many),
  }),
  ...acts,
  execute({ memories }, context) {
    context.memories.setAll(memories);
    return { value: { success: true, keys: memories.map(({ key }) => key) } };
  },
});

const getMemories = defineTool({
  name: "get_memories",
  description: "Read your memories: all of them, or those with these keys.",
  input: z.object({ keys: z.array(Label).max(many).optional() }),
  ...looks,
  execute({ keys }, context) {
    return { value: { memories: context.memories.list(keys).map(({ key, value }) => ({ key, value })) } };
  },
});

const deleteMemories = defineTool({
  name: "delete_memories",
  description: "Forget the memories with these keys.",
  input: z.object({ keys: z.array(Label).min(1).max(many) }),
  ...acts,
  execute({ keys }, context) {
    for (const key of keys) context.memories.delete(key);
    return { value: { success: true } };
  },
});

const setGoals = defineTool({
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

const deleteGoals = defineTool({
  name: "delete_goals",
  description: "Delete the goals with these ids.",
  input: z.object({ goalIds: z.array(Label).min(1).max(many) }),
  ...acts,
  execute({ goalIds }, context) {
    for (const id of goalIds) context.goals.delete(id);
    return { value: { success: true } };
  },
});

export const memoryTools = [setMemories, getMemories, deleteMemories, setGoals, deleteGoals];
