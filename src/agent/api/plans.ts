import { ColloquyError } from "../../shared/errors.ts";
import type { Area } from "./agent-runtime.ts";

/** The agent's plans. */
export const plansArea: Area<"plans" | "putPlan" | "deletePlan"> = {
  plans: ({ services }) => services.plans.list(),
  putPlan: ({ services }, id, plan) => services.plans.put(id, plan),
  deletePlan: ({ services }, id) => {
    if (services.plans.delete([id]) === 0) throw new ColloquyError("not_found", `there is no plan "${id}"`);
    return null;
  },
};
