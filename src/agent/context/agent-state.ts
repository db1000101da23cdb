import type { ToolSet } from "ai";
import type { AgentConfig } from "../../protocol/agent.ts";
import type { ContextConfig, ContextLimits, ModelLimits } from "../../protocol/context-config.ts";
import type { Member } from "../../protocol/entity.ts";
import type { Goal, Memory } from "../../protocol/mind.ts";
import type { Plan } from "../../protocol/plan.ts";
import { maxToldMembers, maxToldSpaces } from "../bounds.ts";
import type { Activity } from "./activity.ts";
import type { ShownBlocks } from "./blocks.ts";
import { goalItem, member, memoryItem, spaceItem } from "./grammar.ts";
import { excerpt, fromNow, plain, quote, shortTime } from "./wording.ts";

/** An agent's config, of any of the four kinds, with its limits resolved for its model. */
export type ComposedConfig = Omit<AgentConfig, "context"> & {
  context: Omit<ContextConfig, "byModel" | keyof ModelLimits> & ContextLimits;
};

/** The parts of every input that follow from the agent's config, its model and its tools. */
export type InputParts = {
  /** Its tool rules are those of the run, which are fixed when it begins. */
  config: ComposedConfig;
  /** Declared to the model beside the messages, in a fixed order. */
  tools: ToolSet;
  /** The ratio of billed to estimated tokens, from this model's earlier bills. */
  correction: number;
};

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

/** The lines of each list by the key of their item: the id of a space, goal or plan, the key of a memory. */
export type StateLines = Record<"spaces" | "goals" | "memories" | "plans", [key: string, line: string][]>;

/**
 * The lists of a state. Without `now` a plan has absolute times, for a consciousness: such a line never has to be
 * rewritten. An input that is made anew each time tells how long it is until the plan is due.
 */
export const stateLines = (state: AgentState, now?: string, activeSpaceId?: string): StateLines => ({
  spaces: state.spaces.slice(0, maxToldSpaces).map((space) => {
    const members = space.members
      .slice(0, maxToldMembers)
      .map((each) => (each.id === state.agentId ? "You" : member.write(each)));
    const more = space.members.length - members.length;
    if (more > 0) members.push(`and ${more} more`);
    const mark = space.id === activeSpaceId ? " [ACTIVE]" : "";
    return [space.id, spaceItem.write({ id: space.id, name: space.name, mark, members: members.join(", ") })];
  }),
  goals: state.goals.map((goal) => {
    const priority = goal.priority === undefined ? "" : `, priority: ${goal.priority}`;
    return [goal.id, goalItem.write({ ...goal, facts: `${goal.longTerm ? ", long-term" : ""}${priority}` })];
  }),
  memories: state.memories.map((memory) => [memory.key, memoryItem.write(memory)]),
  plans: state.plans.map((plan) => [plan.id, planLine(plan, now)]),
});

/** The memories by when they were set. Those that do not fit are left out from the end. */
export const newestFirst = (memories: Memory[]): Memory[] =>
  memories.toSorted((a, b) => (a.updatedAt < b.updatedAt ? 1 : a.updatedAt > b.updatedAt ? -1 : 0));

const shownCharacters = 200;

const planLine = (plan: Plan, now: string | undefined): string => {
  const facts = [`id: ${plan.id}`];
  if (plan.cron === undefined) facts.push("one-time");
  else facts.push("recurring", `cron: ${plain(plan.cron)}`);
  if (plan.timezone !== undefined) facts.push(`timezone: ${plain(plan.timezone)}`);
  if (plan.status !== "active") facts.push(plan.status);
  else if (plan.nextRunAt !== undefined) {
    facts.push(`${plan.cron === undefined ? "at" : "next"}: ${shortTime(plan.nextRunAt)}`);
    if (now !== undefined) facts.push(fromNow(now, plan.nextRunAt));
  }
  if (plan.lastError !== undefined)
    facts.push(`last error: ${quote(excerpt(plan.lastError.message, shownCharacters))}`);
  const named = `${quote(plan.name)} (${facts.join(", ")})`;
  if (now === undefined) return `${named}: ${quote(excerpt(plan.instruction, shownCharacters))}`;
  return plan.runAfter === undefined ? named : `${named}  [created via runAfter: ${quote(plan.runAfter)}]`;
};
