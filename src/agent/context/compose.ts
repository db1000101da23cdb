import type { Composed } from "./composed.ts";
import { composeConsciousness } from "./consciousness/compose-consciousness.ts";
import type { Snapshot } from "./snapshot.ts";
import { composeTimeline } from "./timeline/compose-timeline.ts";

/** Builds a model's input from its parts alone (`input-parts.ts`): pure, and the same bytes for the same snapshot. */
export const compose = (snapshot: Snapshot): Composed =>
  snapshot.continuity === "consciousness" ? composeConsciousness(snapshot) : composeTimeline(snapshot);
