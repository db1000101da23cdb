import type { ConsciousnessSnapshot } from "./consciousness/snapshot.ts";
import type { TimelineSnapshot } from "./timeline/snapshot.ts";

export type { AgentState } from "./agent-state.ts";
export type { Cycle, InboxEvent } from "./consciousness/snapshot.ts";

/** All that a model's input is made of, as data. The same snapshot always gives the same bytes. */
export type Snapshot = ConsciousnessSnapshot | TimelineSnapshot;
