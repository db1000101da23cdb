import * as z from "zod";
import { component, Label, strictComponent, Timestamp } from "./text.ts";

/** A self-set trigger: once, after a while or at a time, or again and again. Its id is the caller's choice. */
export const PlanStatus = z.enum(["active", "done", "failed"]);

const maxPlanInstruction = 4000;

/** ISO 8601; without an offset it is a time in some zone. */
export const ScheduledAt = z.iso.datetime({ offset: true, local: true });

/** Exactly one of `runAfter`, `scheduledAt` and `cron`. */
export const PutPlan = strictComponent("PutPlan", {
  name: z.string().min(1).max(128),
  instruction: z.string().min(1).max(maxPlanInstruction),
  /** In words from now: "2 hours", "3 days". */
  runAfter: z.string().min(1).max(64).optional(),
  /** ISO 8601, in the future; without an offset it is a time in `timezone`. */
  scheduledAt: ScheduledAt.optional(),
  /** Five fields: minute hour day month weekday. */
  cron: z.string().min(1).max(128).optional(),
  /** IANA name, such as Asia/Riyadh; UTC if left out. */
  timezone: z.string().min(1).max(64).optional(),
});
export type PutPlan = z.infer<typeof PutPlan>;

export const Plan = component("Plan", {
  id: Label,
  ...PutPlan.shape,
  name: z.string(),
  instruction: z.string(),
  nextRunAt: Timestamp.optional(),
  status: PlanStatus,
  setBy: z.enum(["agent", "workspace"]),
  lastError: z.object({ code: z.string(), message: z.string() }).optional(),
  updatedAt: Timestamp.optional().describe("When it was set last"),
});
export type Plan = z.infer<typeof Plan>;
