import type { AgentMethods } from "../../protocol/agent-rpc.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { asEntry } from "../memory/archival.ts";
import type { Area } from "./agent-runtime.ts";
import { cursorOf, page } from "./page.ts";

/** The answer to a deletion. `what` is named where there was nothing to delete. */
const deleted = (isGone: boolean, what: string): null => {
  if (!isGone) throw new ColloquyError("not_found", `there is no ${what}`);
  return null;
};

/** The agent's memories, goals, plans and archival entries, and search in all that it knows. */
export const memoryArea = {
  memories: ({ services }) => services.memories.list(),
  putMemory: ({ services }, key, value) => services.memories.set(key, value),
  deleteMemory: ({ services }, key) => deleted(services.memories.delete(key), `memory "${key}"`),
  goals: ({ services }) => services.goals.list(),
  putGoal: ({ services }, id, goal) => services.goals.set(id, goal),
  deleteGoal: ({ services }, id) => deleted(services.goals.delete(id), `goal "${id}"`),
  plans: ({ services }) => services.plans.list(),
  putPlan: ({ services }, id, plan) => services.plans.put(id, plan),
  deletePlan: ({ services }, id) => deleted(services.plans.delete([id]) > 0, `plan "${id}"`),
  search: ({ services }, query) => services.search.search(query),
  archival: ({ services }, { limit, cursor }) =>
    page(services.archival.page(cursorOf(cursor), limit + 1), limit, (row) => row.ordinal, asEntry),
  archive: ({ services }, id, entry) => services.archival.insert({ id, ...entry }),
  deleteArchival: ({ services }, id) => deleted(services.archival.delete(id), "such archival entry"),
} satisfies Partial<Area<keyof AgentMethods>>;
