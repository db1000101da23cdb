import type { CarriedList } from "../../protocol/exported-agent.ts";
import { carriedBlocks, carriedShares } from "./carried-blocks.ts";
import { carriedJournal, carriedRuns, carriedWindows } from "./carried-life.ts";
import type { ListOf } from "./carried-list.ts";
import {
  carriedArchival,
  carriedGoals,
  carriedMemories,
  carriedNames,
  carriedPlans,
  carriedSummaries,
} from "./carried-mind.ts";

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
