import type { Goal, Memory } from "../../protocol/mind.ts";
import { maxToldMembers } from "../bounds.ts";
import type { KnownSpace } from "./agent-state.ts";
import { quote } from "./quote.ts";

/** One line for each thing that an agent has or knows. Names and texts are quoted. */
export const spaceLine = (space: KnownSpace, agentId: string, isActive = false): string => {
  const members = space.members
    .slice(0, maxToldMembers)
    .map((member) => (member.id === agentId ? "You" : `${quote(member.name)} (${member.type})`));
  const more = space.members.length - members.length;
  if (more > 0) members.push(`and ${more} more`);
  return `${quote(space.name)} (id: ${space.id})${isActive ? " [ACTIVE]" : ""} — ${members.join(", ")}`;
};

export const goalLine = (goal: Goal): string => {
  const facts = [`id: ${goal.id}`, goal.status];
  if (goal.longTerm) facts.push("long-term");
  if (goal.priority !== undefined) facts.push(`priority: ${goal.priority}`);
  return `${quote(goal.description)} (${facts.join(", ")})`;
};

export const memoryLine = (memory: Memory): string => `${quote(memory.key)}: ${quote(memory.value)}`;

/** By when they were set: what does not fit is left out from the end. */
export const newestFirst = (memories: Memory[]): Memory[] =>
  memories.toSorted((a, b) => (a.updatedAt < b.updatedAt ? 1 : a.updatedAt > b.updatedAt ? -1 : 0));
