import type { Composed } from "./composed.ts";
import { composeConsciousness } from "./consciousness/compose-consciousness.ts";
import type { Snapshot } from "./snapshot.ts";
import { composeTimeline } from "./timeline/compose-timeline.ts";

/** Makes a model's input from data alone: pure, and the same bytes for the same snapshot. */
export const compose = (snapshot: Snapshot, correction = 1): Composed =>
  snapshot.continuity === "consciousness"
    ? composeConsciousness(snapshot, correction)
    : composeTimeline(snapshot, correction);
