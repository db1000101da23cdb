import type { Goal, Memory } from "../../protocol/mind.ts";
import { maxToldMembers } from "../bounds.ts";
import type { KnownSpace } from "./agent-state.ts";
import { goalItem, member, memoryItem, spaceItem } from "./grammar.ts";

/** One line for each thing that an agent has or knows. Names and texts are quoted. */
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

/** By when they were set: what does not fit is left out from the end. */
export const newestFirst = (memories: Memory[]): Memory[] =>
  memories.toSorted((a, b) => (a.updatedAt < b.updatedAt ? 1 : a.updatedAt > b.updatedAt ? -1 : 0));
