import { ColloquyError } from "../../shared/errors.ts";
import type { Area } from "./agent-runtime.ts";

/** The agent's memories and goals. */
export const memoryArea: Area<"memories" | "putMemory" | "deleteMemory" | "goals" | "putGoal" | "deleteGoal"> = {
  memories: ({ services }) => services.memories.list(),
  putMemory: ({ services }, key, value) => services.memories.set(key, value),
  deleteMemory: ({ services }, key) => {
    if (!services.memories.delete(key)) throw new ColloquyError("not_found", `there is no memory "${key}"`);
    return null;
  },
  goals: ({ services }) => services.goals.list(),
  putGoal: ({ services }, id, goal) => services.goals.set(id, goal),
  deleteGoal: ({ services }, id) => {
    if (!services.goals.delete(id)) throw new ColloquyError("not_found", `there is no goal "${id}"`);
    return null;
  },
};

/** The agent's plans. */
export const plansArea: Area<"plans" | "putPlan" | "deletePlan"> = {
  plans: ({ services }) => services.plans.list(),
  putPlan: ({ services }, id, plan) => services.plans.put(id, plan),
  deletePlan: ({ services }, id) => {
    if (services.plans.delete([id]) === 0) throw new ColloquyError("not_found", `there is no plan "${id}"`);
    return null;
  },
};
