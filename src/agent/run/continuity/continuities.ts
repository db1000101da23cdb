import type { AgentConfig } from "../../../protocol/agent.ts";
import { consciousness } from "./consciousness.ts";
import type { Continuity } from "./continuity.ts";
import { timeline } from "./timeline.ts";

const continuities: Record<AgentConfig["continuity"], Continuity> = { consciousness, timeline };

/** The continuity of a run, which is fixed when it begins, or of an agent's config. */
export const continuityOf = ({ continuity }: { continuity: AgentConfig["continuity"] }): Continuity =>
  continuities[continuity];
