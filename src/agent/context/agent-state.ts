import type { ToolSet } from "ai";
import type { AgentConfig } from "../../protocol/agent.ts";
import type { ContextLimits } from "../../protocol/context-config.ts";
import type { Member } from "../../protocol/entity.ts";
import type { Goal, Memory } from "../../protocol/mind.ts";
import type { Plan } from "../../protocol/plan.ts";
import { maxToldMembers, maxToldSpaces } from "../bounds.ts";
import type { Known } from "../records.ts";
import type { Activity } from "./activity.ts";
import type { KnownShare, ShownBlocks } from "./blocks.ts";
import { goalItem, member, memoryItem, openMark, spaceItem } from "./grammar.ts";
import { brief, fromNow, plain, quote, shortTime } from "./wording.ts";

/** The parts of every input that follow from the agent's config, its model and its tools. */
export type InputParts = {
  /** Its tool rules are those of the run, which are fixed when it begins. */
  config: AgentConfig;
  /** As they are for the agent's model. */
  limits: ContextLimits;
  /** Declared to the model beside the messages, in a fixed order. */
  tools: ToolSet;
  /** The ratio of billed to estimated tokens, from this model's earlier bills. */
  correction: number;
};

export type SpaceRef = { id: string; name: string };

export type KnownSpace = SpaceRef & { members: Member[]; confidential?: true | undefined };

/** An agent's knowledge of itself and its surroundings, as data. Lists are shown in their order. */
export type AgentState = {
  agentId: string;
  /** The confidential space whose compartment this is of the agent; null in its open mind. */
  compartmentSpaceId?: string | null;
  spaces: KnownSpace[];
  goals: Known<Goal>[];
  memories: Known<Memory>[];
  /** Includes done and failed plans, as long as they are kept. */
  plans: Known<Plan>[];
  /** Its blocks in this input, and those that did not fit. */
  blocks?: ShownBlocks;
  /** Blocks of others that are not among them. A consciousness reads of them in a row of its own. */
  shares?: KnownShare[];
  /** Recent deeds of other agents, if the config asks for them. A consciousness reads them in a row of its own. */
  activity?: Activity | undefined;
};

/** An item of a list: its key is the id of a space, goal or plan, or a memory's own. The lowest rank is left out last. */
export type StateLine = { key: string; line: string; rank: number };

/** Ends the key of an item of the open mind: a compartment may have set one of the same name before. No name has a dot. */
export const openKey = ".open";
export const isOpenKey = (key: string): boolean => key.endsWith(openKey);

export type StateLines = Record<"spaces" | "goals" | "memories" | "plans", StateLine[]>;

/**
 * The lists of a state. Without `now` a plan has absolute times, for a consciousness: such a line never has to be
 * rewritten. An input that is made anew each time tells how long it is until the plan is due.
 */
export const stateLines = (state: AgentState, now?: string, activeSpaceId?: string): StateLines => {
  const newestFirst = state.memories.toSorted((a, b) =>
    a.updatedAt < b.updatedAt ? 1 : a.updatedAt > b.updatedAt ? -1 : 0,
  );
  const ages = new Map(newestFirst.map((memory, age) => [memory, age]));
  const keyOf = (key: string, { open }: { open?: true }): string => (open ? `${key}${openKey}` : key);
  const rankOf = ({ status }: { status: string }, index: number): number =>
    status === "active" ? index : Number.MAX_SAFE_INTEGER;
  return {
    spaces: state.spaces.slice(0, maxToldSpaces).map(({ id: key, name, members, confidential }, index) => {
      const told = members
        .slice(0, maxToldMembers)
        .map((each) => (each.id === state.agentId ? "You" : member.write(each)));
      const more = members.length - told.length;
      if (more > 0) told.push(`and ${more} more`);
      const [active, rank] = key === activeSpaceId ? [" [ACTIVE]", -1] : ["", index];
      const mark = `${active}${confidential ? confidentialMark(key, state.compartmentSpaceId ?? null) : ""}`;
      return { key, line: spaceItem.write({ id: key, name, mark, members: told.join(", ") }), rank };
    }),
    goals: state.goals.map((goal, index) => {
      const priority = goal.priority === undefined ? "" : `, priority: ${goal.priority}`;
      const facts = `${goal.longTerm ? ", long-term" : ""}${priority}${goal.open ? ", open" : ""}`;
      return { key: keyOf(goal.id, goal), line: goalItem.write({ ...goal, facts }), rank: rankOf(goal, index) };
    }),
    memories: state.memories.map((memory) => {
      const { key, value, open } = memory;
      const line = memoryItem.write({ key, value, mark: open ? openMark : "" });
      return { key: keyOf(key, memory), line, rank: ages.get(memory) ?? 0 };
    }),
    plans: state.plans.map((plan, index) => ({
      ...{ key: keyOf(plan.id, plan), line: planLine(plan, now), rank: rankOf(plan, index) },
    })),
  };
};

/** The mark of a confidential space: what a run may do there. */
const confidentialMark = (spaceId: string, ownId: string | null): string => {
  if (ownId === spaceId) return " [CONFIDENTIAL]";
  return ownId === null ? " [CONFIDENTIAL: you may speak there, not read]" : " [CONFIDENTIAL: closed to you here]";
};

const shownCharacters = 200;

const planLine = (plan: Known<Plan>, now: string | undefined): string => {
  const facts = [`id: ${plan.id}`];
  if (plan.cron === undefined) facts.push("one-time");
  else facts.push("recurring", `cron: ${plain(plan.cron)}`);
  if (plan.timezone !== undefined) facts.push(`timezone: ${plain(plan.timezone)}`);
  if (plan.status !== "active") facts.push(plan.status);
  else if (plan.nextRunAt !== undefined) {
    facts.push(`${plan.cron === undefined ? "at" : "next"}: ${shortTime(plan.nextRunAt)}`);
    if (now !== undefined) facts.push(fromNow(now, plan.nextRunAt));
  }
  if (plan.open) facts.push("open");
  if (plan.lastError !== undefined) facts.push(`last error: ${brief(plan.lastError.message, shownCharacters)}`);
  const named = `${quote(plan.name)} (${facts.join(", ")})`;
  if (now === undefined) return `${named}: ${brief(plan.instruction, shownCharacters)}`;
  return plan.runAfter === undefined ? named : `${named}  [created via runAfter: ${quote(plan.runAfter)}]`;
};
