import { type ConsciousnessSnapshot, composeConsciousness } from "./consciousness/compose-consciousness.ts";
import type { Composed } from "./sections.ts";
import { composeTimeline, type TimelineSnapshot } from "./timeline/compose-timeline.ts";

/** The data of a model's input. */
export type Snapshot = ConsciousnessSnapshot | TimelineSnapshot;

/** Builds a model's input from its parts alone: pure, and the same bytes for the same snapshot. */
export const compose = (snapshot: Snapshot): Composed =>
  snapshot.continuity === "consciousness" ? composeConsciousness(snapshot) : composeTimeline(snapshot);
