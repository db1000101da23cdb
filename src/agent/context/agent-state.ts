import type { ToolSet } from "ai";
import type { AgentConfig } from "../../protocol/agent.ts";
import type { ContextConfig, ContextLimits, ModelLimits } from "../../protocol/context-config.ts";
import type { Member } from "../../protocol/entity.ts";
import type { Goal, Memory } from "../../protocol/mind.ts";
import type { Plan } from "../../protocol/plan.ts";
import type { ToolRule } from "../../protocol/tool.ts";
import { maxToldMembers } from "../bounds.ts";
import type { Activity } from "./activity.ts";
import type { ShownBlocks } from "./blocks.ts";
import { goalItem, member, memoryItem, spaceItem } from "./grammar.ts";
import { excerpt, quote } from "./quote.ts";
import { fromNow, shortTime } from "./time.ts";

/** The two switches that make four kinds of agents. */
export type Continuity = AgentConfig["continuity"];
export type Messaging = AgentConfig["messaging"];

/** An agent's config, of any of the four kinds, with its limits resolved for its model. */
export type ComposedConfig = Omit<AgentConfig, "context"> & {
  context: Omit<ContextConfig, "byModel" | keyof ModelLimits> & ContextLimits;
};

/** The parts of the system message beside the tool rules: the agent's name and kind, and its owner's words. */
export type BaseInstructions = Pick<
  ComposedConfig,
  "name" | "description" | "instructions" | "continuity" | "messaging"
>;

/** The parts of every input that follow from the agent's config, its model and its tools. */
export type InputParts = {
  base: BaseInstructions;
  toolRules: ToolRule[];
  /** Declared to the model beside the messages, in a fixed order. */
  tools: ToolSet;
  /** How the past is shown, and the limits for the agent's model. */
  context: ComposedConfig["context"];
  /** The ratio of billed to estimated tokens, from this model's earlier bills. */
  correction: number;
};

/** Rules and tools are a run's, which are fixed when it begins. */
export const inputParts = (
  { name, description, instructions, continuity, messaging, context, toolRules }: ComposedConfig,
  fixed: Partial<Pick<InputParts, "toolRules" | "tools" | "correction">> = {},
): InputParts => ({
  base: { name, description, instructions, continuity, messaging },
  ...{ toolRules, tools: {}, context, correction: 1 },
  ...fixed,
});

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

const shownCharacters = 200;

/** The plan's kind, and when it is due; relative to `now` too, if that is given. */
const factsOf = (plan: Plan, now: string | undefined): string[] => {
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
  return facts;
};

/** A plan with absolute times, for a consciousness: such a line never has to be rewritten. */
export const planLine = (plan: Plan): string =>
  `${quote(plan.name)} (${factsOf(plan, undefined).join(", ")}): ${quote(excerpt(plan.instruction, shownCharacters))}`;

/** A plan with the time until it is due, for an input that is made anew each time. */
export const planLineFrom = (plan: Plan, now: string): string => {
  const how = plan.runAfter === undefined ? "" : `  [created via runAfter: ${quote(plan.runAfter)}]`;
  return `${quote(plan.name)} (${factsOf(plan, now).join(", ")})${how}`;
};

/** A label, a cron or a time zone as it is. Any other text is quoted, so that it cannot pass for more (S2). */
export const plain = (text: string): string =>
  /^[A-Za-z0-9_*?#@/,.+-]+(?: [A-Za-z0-9_*?#@/,.+-]+)*$/.test(text) ? text : quote(text);
