import type { RunRow } from "../runs.ts";
import type { Kind } from "../tools/registry.ts";
import type { Parts } from "./parts.ts";

/** The kind of agent that a run is of: its continuity and its own tools are fixed when it begins. */
export const kindOf = (parts: Parts, run: RunRow): Kind => ({
  continuity: run.continuity,
  messaging: parts.identity.get().config.messaging,
  tools: parts.consciousness.window(run.windowId)?.toolset.tools ?? [],
});
