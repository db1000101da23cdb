import type { RowKind } from "../../protocol/exported-agent.ts";
import { blockRows, shareRows } from "./block-kinds.ts";
import { journalRows, runRows, windowRows } from "./history-kinds.ts";
import type { KindStore } from "./kind-store.ts";
import { archivalRows, goalRows, memoryRows, nameRows, planRows, summaryRows } from "./memory-kinds.ts";

/** The kinds of rows of an exported agent, each with its store. */
export const kindStores: { [Kind in RowKind]: KindStore<Kind> } = {
  name: nameRows,
  memory: memoryRows,
  goal: goalRows,
  plan: planRows,
  window: windowRows,
  run: runRows,
  journal: journalRows,
  summary: summaryRows,
  block: blockRows,
  share: shareRows,
  archival: archivalRows,
};
