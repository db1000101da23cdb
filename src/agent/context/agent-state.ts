import type { AgentConfig } from "../../protocol/agent.ts";
import type { ContextConfig, ContextLimits, ModelLimits } from "../../protocol/context-config.ts";
import type { Member } from "../../protocol/entity.ts";
import type { Goal, Memory } from "../../protocol/mind.ts";
import type { Plan } from "../../protocol/plan.ts";
import { maxToldMembers } from "../bounds.ts";
import type { Activity } from "./activity.ts";
import type { ShownBlocks } from "./blocks.ts";
import { goalItem, member, memoryItem, spaceItem } from "./grammar.ts";

/** The two switches that make four kinds of agents. */
export type Continuity = "consciousness" | "timeline";
export type Messaging = "simple" | "threaded";

/** An agent's config, of any of the four kinds, with its limits resolved for its model. */
export type ComposedConfig = Omit<AgentConfig, "continuity" | "messaging" | "context"> & {
  continuity: Continuity;
  messaging: Messaging;
  context: Omit<ContextConfig, "byModel" | keyof ModelLimits> & ContextLimits;
};

/** The parts of the system message beside the tool rules: the agent's name and kind, and its owner's words. */
export type BaseInstructions = Pick<
  ComposedConfig,
  "name" | "description" | "instructions" | "continuity" | "messaging"
>;

export type SpaceRef = { id: string; name: string };

export type KnownSpace = SpaceRef & { members: Member[] };

/** An agent's knowledge of itself and its surroundings, as data. Lists are shown in their order. */
export type AgentState = {
  agentId: string;
  spaces: KnownSpace[];
  goals: Goal[];
  memories: Memory[];
  /** Includes done and failed plans, as long as they are kept. */
  plans: Plan[];
  /** Its blocks in this input, and those that did not fit. */
  blocks?: ShownBlocks;
  /** Recent deeds of other agents, if the config asks for them. A consciousness reads them in a row of its own. */
  activity?: Activity | undefined;
};

export const spaceLine = (space: KnownSpace, agentId: string, isActive = false): string => {
  const members = space.members
    .slice(0, maxToldMembers)
    .map((each) => (each.id === agentId ? "You" : member.write(each)));
  const more = space.members.length - members.length;
  if (more > 0) members.push(`and ${more} more`);
  const { name, id } = space;
  return spaceItem.write({ name, id, mark: isActive ? " [ACTIVE]" : "", members: members.join(", ") });
};

export const goalLine = (goal: Goal): string => {
  const priority = goal.priority === undefined ? "" : `, priority: ${goal.priority}`;
  return goalItem.write({ ...goal, facts: `${goal.longTerm ? ", long-term" : ""}${priority}` });
};

export const memoryLine = (memory: Memory): string => memoryItem.write(memory);

/** The memories by when they were set. Those that do not fit are left out from the end. */
export const newestFirst = (memories: Memory[]): Memory[] =>
  memories.toSorted((a, b) => (a.updatedAt < b.updatedAt ? 1 : a.updatedAt > b.updatedAt ? -1 : 0));
