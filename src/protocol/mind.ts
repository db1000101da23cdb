import * as z from "zod";
import { component, Label, strictComponent, Timestamp } from "./text.ts";

/** An agent's memories and goals. */
export const Memory = component("Memory", { key: Label, value: z.string(), updatedAt: Timestamp });
export type Memory = z.infer<typeof Memory>;

export const maxMemoryCharacters = 4000;
export const PutMemory = strictComponent("PutMemory", { value: z.string().min(1).max(maxMemoryCharacters) });

export const GoalStatus = z.enum(["active", "completed", "abandoned"]);

export const Goal = component("Goal", {
  id: Label,
  description: z.string(),
  status: GoalStatus,
  priority: z.int().optional(),
  longTerm: z.boolean(),
  updatedAt: Timestamp,
});
export type Goal = z.infer<typeof Goal>;

/** A field that is left out stays as it was; a new goal needs its description. */
export const PutGoal = strictComponent("PutGoal", {
  description: z.string().min(1).max(1000).optional(),
  status: GoalStatus.optional(),
  priority: z.int().min(1).max(100).optional(),
  longTerm: z.boolean().optional(),
});
export type PutGoal = z.infer<typeof PutGoal>;
