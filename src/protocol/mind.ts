import { z } from "zod";
import { Label, Timestamp } from "./text.ts";

/** An agent's memories and goals. */
export const Memory = z.object({ key: Label, value: z.string(), updatedAt: Timestamp }).meta({ id: "Memory" });
export type Memory = z.infer<typeof Memory>;

export const maxMemoryCharacters = 4000;
export const PutMemory = z
  .strictObject({ value: z.string().min(1).max(maxMemoryCharacters) })
  .meta({ id: "PutMemory" });

export const GoalStatus = z.enum(["active", "completed", "abandoned"]);

export const Goal = z
  .object({
    id: Label,
    description: z.string(),
    status: GoalStatus,
    priority: z.int().optional(),
    longTerm: z.boolean(),
    updatedAt: Timestamp,
  })
  .meta({ id: "Goal" });
export type Goal = z.infer<typeof Goal>;

/** A field that is left out stays as it was; a new goal needs its description. */
export const PutGoal = z
  .strictObject({
    description: z.string().min(1).max(1000).optional(),
    status: GoalStatus.optional(),
    priority: z.int().min(1).max(100).optional(),
    longTerm: z.boolean().optional(),
  })
  .meta({ id: "PutGoal" });
export type PutGoal = z.infer<typeof PutGoal>;
