import type { ConsciousnessSnapshot } from "./consciousness/snapshot.ts";
import type { TimelineSnapshot } from "./timeline/snapshot.ts";

export type { AgentState } from "./agent-state.ts";
export type { Cycle, InboxEvent } from "./consciousness/snapshot.ts";

/** The data of a model's input. The same snapshot always gives the same bytes. */
export type Snapshot = ConsciousnessSnapshot | TimelineSnapshot;
