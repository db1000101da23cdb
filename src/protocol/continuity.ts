import type { AgentConfig } from "./agent.ts";

/** In what the continuities differ for whoever delivers, stores and reads. How each one runs is told by `src/agent/run/continuity`. */
export type ContinuityFacts = {
  /** Whether a run takes all events that wait. Otherwise it takes one. */
  takesBatches: boolean;
  /** Whether no other run goes on beside one, so that its rows lie together in the journal. */
  runsAlone: boolean;
  /** Whether a run that asked for answers rests until they come. Otherwise they come as events of later runs. */
  waitsForAnswers: boolean;
  /** Whether later runs read a run that acted or was completed as their past. */
  keepsRuns: boolean;
  /** Whether runs read messages that wake nobody in their space's history, marked as seen or new. Otherwise they come as events. */
  readsHistory: boolean;
};

const facts: Record<AgentConfig["continuity"], ContinuityFacts> = {
  consciousness: { takesBatches: true, runsAlone: true, waitsForAnswers: false, keepsRuns: true, readsHistory: false },
  timeline: { takesBatches: false, runsAlone: false, waitsForAnswers: true, keepsRuns: false, readsHistory: true },
};

/** Facts of the continuity that a run began with, or of an agent's config. */
export const continuityFacts = ({ continuity }: Pick<AgentConfig, "continuity">): ContinuityFacts => facts[continuity];
