import { maxToldSpaces } from "../../bounds.ts";
import { goalLine, memoryLine, newestFirst, spaceLine } from "../agent-state.ts";
import type { Cut, Section } from "../composed.ts";
import { emptyList, listItem, stateSections } from "../grammar.ts";
import { keepFitting, linesTokens, lineTokens } from "../keep-fitting.ts";
import { planLineFrom } from "../plan-line.ts";
import { quote } from "../quote.ts";
import type { TimelineSnapshot } from "./snapshot.ts";

export const sectionOf = (name: string, lines: string[]): Section => ({
  name,
  text: lines.join("\n"),
  tokens: linesTokens(lines),
});

type List<Item> = {
  name: string;
  heading: string;
  items: Item[];
  line: (item: Item) => string;
  /** The lowest is left out last. */
  rank: (item: Item, index: number) => number | string;
  /** The note about left out items. */
  note: (left: Item[]) => string;
  rule: string;
};

const listSection = <Item>(list: List<Item>, room: number): Cut => {
  const lines = new Map(list.items.map((item) => [item, `  ${listItem.write({ item: list.line(item) })}`]));
  const lineOf = (item: Item): string => lines.get(item) ?? "";
  const heading = `${list.heading}:`;
  const tokensOf = (item: Item): number => lineTokens(lineOf(item));
  const { kept, left } = keepFitting(list.items, room - lineTokens(heading), tokensOf, list.rank);
  const note = left.length === 0 ? [] : [`  (${left.length} ${list.note(left)})`];
  const shown = list.items.length === 0 ? [`  ${emptyList}`] : kept.map(lineOf);
  return {
    section: sectionOf(list.name, [heading, ...shown, ...note]),
    dropped: left.length === 0 ? [] : [{ name: list.name, reason: `${left.length} do not fit ${list.rule}` }],
  };
};

export const spacesSection = ({ state, activeSpace }: TimelineSnapshot, room: number): Cut =>
  listSection(
    {
      name: "spaces",
      heading: stateSections.spaces,
      items: state.spaces.slice(0, maxToldSpaces),
      line: (space) => spaceLine(space, state.agentId, space.id === activeSpace?.id),
      rank: (space, index) => (space.id === activeSpace?.id ? -1 : index),
      note: () => "more spaces are not shown",
      rule: "context.maxTokens",
    },
    room,
  );

export const goalsSection = ({ state }: TimelineSnapshot, room: number): Cut =>
  listSection(
    {
      name: "goals",
      heading: stateSections.goals,
      items: state.goals,
      line: goalLine,
      rank: (goal, index) => (goal.status === "active" ? index : state.goals.length + index),
      note: () => "more goals are not shown",
      rule: "context.maxTokens",
    },
    room,
  );

const namedKeys = 3;

/** The newest memories that fit `memoryTokens`, and some keys of the others. */
export const memoriesSection = ({ state }: TimelineSnapshot, room: number, memoryTokens: number): Cut => {
  const ranks = new Map(newestFirst(state.memories).map((memory, index) => [memory, index]));
  return listSection(
    {
      name: "memories",
      heading: stateSections.memories,
      items: state.memories,
      line: memoryLine,
      rank: (memory) => ranks.get(memory) ?? 0,
      note: (left) => {
        const keys = left.slice(0, namedKeys).map(({ key }) => quote(key));
        return `older ones are not shown: get_memories reads them, such as ${keys.join(", ")}`;
      },
      rule: room < memoryTokens ? "context.maxTokens" : "context.memoryTokens",
    },
    Math.min(room, memoryTokens),
  );
};

export const plansSection = ({ state, now }: TimelineSnapshot, room: number): Cut =>
  listSection(
    {
      name: "plans",
      heading: stateSections.plans,
      items: state.plans,
      line: (plan) => planLineFrom(plan, now),
      rank: (plan, index) => (plan.status === "active" ? index : state.plans.length + index),
      note: () => "more plans are not shown: get_plans reads them",
      rule: "context.maxTokens",
    },
    room,
  );
