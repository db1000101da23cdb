import type { CarriedList } from "../../protocol/exported-agent.ts";
import { carriedBlocks, carriedShares } from "./block-kinds.ts";
import { carriedJournal, carriedRuns, carriedWindows } from "./history-kinds.ts";
import type { ListOf } from "./kind-store.ts";
import {
  carriedArchival,
  carriedGoals,
  carriedMemories,
  carriedNames,
  carriedPlans,
  carriedSummaries,
} from "./memory-kinds.ts";

/** What an agent is carried as, list by list. */
export const lists: { [List in CarriedList]: ListOf<List> } = {
  names: carriedNames,
  memories: carriedMemories,
  goals: carriedGoals,
  plans: carriedPlans,
  windows: carriedWindows,
  runs: carriedRuns,
  journal: carriedJournal,
  summaries: carriedSummaries,
  blocks: carriedBlocks,
  shares: carriedShares,
  archival: carriedArchival,
};
