import { maxToldSpaces } from "../../bounds.ts";
import { goalLine, memoryLine, newestFirst, planLineFrom, spaceLine } from "../agent-state.ts";
import { emptyList, listItem, stateSections } from "../grammar.ts";
import { quote } from "../quote.ts";
import { type Cut, keepFitting, lineTokens, sectionOf } from "../sections.ts";
import type { TimelineSnapshot } from "./snapshot.ts";

type List<Item> = {
  name: keyof typeof stateSections;
  items: Item[];
  line: (item: Item) => string;
  /** The lowest is left out last. */
  rank: (item: Item, index: number) => number;
  /** The note about left out items. */
  note?: (left: Item[]) => string;
  rule?: string;
};

const listSection = <Item>(room: number, { name, items, line, rank, ...list }: List<Item>): Cut => {
  const { note = () => `more ${name} are not shown`, rule = "context.maxTokens" } = list;
  const lines = new Map(items.map((item) => [item, `  ${listItem.write({ item: line(item) })}`]));
  const lineOf = (item: Item): string => lines.get(item) ?? "";
  const heading = `${stateSections[name]}:`;
  const { kept, left } = keepFitting(items, room - lineTokens(heading), (item) => lineTokens(lineOf(item)), rank);
  const shown = items.length === 0 ? [`  ${emptyList}`] : kept.map(lineOf);
  if (left.length === 0) return { section: sectionOf(name, [heading, ...shown]), dropped: [] };
  return {
    section: sectionOf(name, [heading, ...shown, `  (${left.length} ${note(left)})`]),
    dropped: [{ name, reason: `${left.length} do not fit ${rule}` }],
  };
};

/** Those that are active are left out last. */
const activeFirst = ({ status }: { status: string }, index: number): number =>
  status === "active" ? index : Number.MAX_SAFE_INTEGER;

export const spacesSection = ({ state, activeSpace }: TimelineSnapshot, room: number): Cut =>
  listSection(room, {
    name: "spaces",
    items: state.spaces.slice(0, maxToldSpaces),
    line: (space) => spaceLine(space, state.agentId, space.id === activeSpace?.id),
    rank: (space, index) => (space.id === activeSpace?.id ? -1 : index),
  });

export const goalsSection = ({ state }: TimelineSnapshot, room: number): Cut =>
  listSection(room, { name: "goals", items: state.goals, line: goalLine, rank: activeFirst });

const namedKeys = 3;

/** The newest memories that fit `memoryTokens`, and some keys of the others. */
export const memoriesSection = ({ state }: TimelineSnapshot, room: number, memoryTokens: number): Cut => {
  const ranks = new Map(newestFirst(state.memories).map((memory, index) => [memory, index]));
  return listSection(Math.min(room, memoryTokens), {
    name: "memories",
    items: state.memories,
    line: memoryLine,
    rank: (memory) => ranks.get(memory) ?? 0,
    note: (left) => {
      const keys = left.slice(0, namedKeys).map(({ key }) => quote(key));
      return `older ones are not shown: get_memories reads them, such as ${keys.join(", ")}`;
    },
    rule: room < memoryTokens ? "context.maxTokens" : "context.memoryTokens",
  });
};

export const plansSection = ({ state, now }: TimelineSnapshot, room: number): Cut =>
  listSection(room, {
    name: "plans",
    items: state.plans,
    line: (plan) => planLineFrom(plan, now),
    rank: activeFirst,
    note: () => "more plans are not shown: get_plans reads them",
  });
