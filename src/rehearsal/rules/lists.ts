import { z } from "zod";
import type { ActionResult } from "../prompt-view.ts";
import { slug } from "../slug.ts";
import { answer, type Doing, enter, type Rule, type ToolCall, type Turn } from "../turn.ts";
import { itemsIn, withoutEnd } from "../words-as-data.ts";

/**
 * A list that the agent keeps with the people of a space: a block of memory, shared with that space, which they see and
 * change in the page while it does. "add milk to the list", "cross off milk", "what is on the list?".
 */
type Item = { text: string; isDone: boolean; isPlain: boolean };
type List = { version: number; items: Item[] };

const listNamed = String.raw`(?:the|our|my|this)\s+(?:([\p{L}\p{N}' -]{1,40}?)\s+)?list`;
const adding = new RegExp(
  String.raw`^\s*(?:add|put|write)\s+(.+?)\s+(?:down\s+)?(?:to|on|onto)\s+${listNamed}\s*[.!]*$`,
  "isu",
);
const crossing = new RegExp(
  String.raw`^\s*(?:cross|check|tick|strike)\s+(?:off\s+|out\s+)?(.+?)(?:\s+(?:(?:off|out)\s+)?(?:(?:of|from|on)\s+)?${listNamed}|\s+(?:off|out))?\s*[.!]*$`,
  "isu",
);
const asking = new RegExp(
  String.raw`\b(?:what(?:'s| is| stands)?|show(?: me| us)?|read(?: me| us)?)\s+(?:still\s+|left\s+|now\s+)?(?:on\s+|in\s+)?${listNamed}\s*[.!?]*$`,
  "isu",
);
const sharing = new RegExp(String.raw`^\s*share\s+${listNamed}(?:\s+(?:here|with\s+.+))?\s*[.!]*$`, "isu");

/** "the milk and some bread" are milk and bread. */
const wantedIn = (text: string): string[] =>
  itemsIn(text).map((item) => item.replace(/^(?:the|an?|some)\s+(?=\S)/i, ""));

const canKeep = ({ cycle }: Turn): boolean => cycle.tools.some(({ name }) => name === "block_edit");
/** "the shopping list" is the block `shopping`, "the list" the block `list`. */
const labelOf = (name: string | undefined): string => slug(name ?? "") || "list";
const titleOf = (label: string): string => (label === "list" ? "the list" : `the ${label} list`);

const Loaded = z.object({ version: z.number(), content: z.string() });

/** An item of a list as it reads: `[x] {done: true, text: milk}`, `2. milk`. */
const itemIn = (line: string): Item | undefined => {
  const [, mark, words] = /^(\[[ x]\]|\d+\.) (.*)$/s.exec(line) ?? [];
  if (mark === undefined || words === undefined) return undefined;
  const text = /^\{done: (?:true|false), text: (.*)\}$/s.exec(words)?.[1];
  return { text: text ?? words, isDone: mark === "[x]", isPlain: text !== undefined || mark.endsWith(".") };
};

const listIn = (result: ActionResult): List | undefined => {
  const loaded = result.ok ? Loaded.safeParse(result.value).data : undefined;
  if (!loaded) return undefined;
  return { version: loaded.version, items: loaded.content.split("\n").flatMap((line) => itemIn(line) ?? []) };
};

const load = (label: string): ToolCall => ({ toolName: "block_load", input: { label } });
const entry = (text: string, done: boolean) => ({ text, done });
const isNamed = ({ text }: Item, wanted: string): boolean => text.toLowerCase() === wanted.toLowerCase();
const named = (items: string[]): string => items.map((item) => `"${item}"`).join(", ");
const are = (items: unknown[]): string => (items.length === 1 ? "is" : "are");

function* begin(turn: Turn, label: string, wanted: string[]): Doing {
  const schema = { type: "list" };
  const content = wanted.map((text) => entry(text, false));
  const description = "What is still to be got and done.";
  const created = yield {
    toolName: "block_create",
    input: { label, type: "working", pinned: true, description, schema, content },
  };
  if (!created.ok) return yield* answer(turn, `I could not begin ${titleOf(label)}: ${created.message}`, "no list");
  const shared = yield { toolName: "block_share", input: { label, space: turn.event.spaceId } };
  const where = shared.ok ? " You find it under Blocks here, and can change it too." : "";
  const text = `${turn.tone.done} I began ${titleOf(label)} with ${named(wanted)}.${where}`;
  return yield* answer(turn, text, `began ${titleOf(label)} with ${named(wanted)}`);
}

function* addTo(turn: Turn, label: string, wanted: string[]): Doing {
  if (!(yield* enter(turn.cycle, turn.event.spaceId))) return "could not enter the space";
  const result = yield load(label);
  if (!result.ok && result.code === "not_found") return yield* begin(turn, label, wanted);
  const list = listIn(result);
  if (!list) return yield* unreadable(turn, label, result);
  const open = wanted.filter((text) => list.items.some((item) => isNamed(item, text) && !item.isDone));
  const fresh = wanted.filter((text) => !open.includes(text));
  const already = `${named(open)} ${are(open)} on ${titleOf(label)} already.`;
  if (fresh.length === 0) return yield* answer(turn, already, "they were on it already");
  const operations = fresh.map((text) => {
    const index = list.items.findIndex((item) => isNamed(item, text) && item.isPlain);
    return index === -1
      ? { op: "push_item", item: entry(text, false) }
      : { op: "set_item", index, item: entry(text, false) };
  });
  const edited = yield { toolName: "block_edit", input: { label, operations, onVersion: list.version } };
  if (!edited.ok) return yield* answer(turn, `I could not add it: ${edited.message}`, "could not add to a list");
  const text = `${turn.tone.done} ${named(fresh)} ${are(fresh)} on ${titleOf(label)}.${open.length > 0 ? ` ${already}` : ""}`;
  return yield* answer(turn, text, `added ${named(fresh)} to ${titleOf(label)}`);
}

function* crossOff(turn: Turn, label: string, wanted: string[]): Doing {
  if (!(yield* enter(turn.cycle, turn.event.spaceId))) return "could not enter the space";
  const result = yield load(label);
  const list = listIn(result);
  if (!list) return yield* unreadable(turn, label, result);
  const found = wanted.flatMap((text) => {
    const exact = list.items.findIndex((item) => isNamed(item, text));
    const like = list.items.findIndex((item) => item.text.toLowerCase().includes(text.toLowerCase()));
    const index = exact === -1 ? like : exact;
    const item = list.items[index];
    return item?.isPlain ? [{ index, item }] : [];
  });
  if (found.length < wanted.length) {
    return yield* answer(turn, `I do not find ${named(wanted)} on ${titleOf(label)}.`, "it is not on the list");
  }
  const operations = found.map(({ index, item }) => ({ op: "set_item", index, item: entry(item.text, true) }));
  const edited = yield { toolName: "block_edit", input: { label, operations, onVersion: list.version } };
  if (!edited.ok) return yield* answer(turn, `I could not cross it off: ${edited.message}`, "could not cross it off");
  const texts = named(found.map(({ item }) => item.text));
  return yield* answer(turn, `${turn.tone.done} I crossed off ${texts}.`, `crossed ${texts} off ${titleOf(label)}`);
}

function* tell(turn: Turn, label: string): Doing {
  if (!(yield* enter(turn.cycle, turn.event.spaceId))) return "could not enter the space";
  const result = yield load(label);
  const list = listIn(result);
  if (!list) return yield* unreadable(turn, label, result);
  const textsOf = (isDone: boolean): string[] =>
    list.items.filter((item) => item.isDone === isDone).map(({ text }) => text);
  const [open, done] = [textsOf(false), textsOf(true)];
  const left = open.length > 0 ? `On ${titleOf(label)}: ${open.join(", ")}.` : `Nothing is left on ${titleOf(label)}.`;
  const crossed = done.length > 0 ? ` Crossed off: ${done.join(", ")}.` : "";
  return yield* answer(turn, turn.tone.dress(`${left}${crossed}`), `told what is on ${titleOf(label)}`);
}

function* share(turn: Turn, label: string): Doing {
  const shared = yield { toolName: "block_share", input: { label, space: turn.event.spaceId } };
  const text = shared.ok
    ? `${turn.tone.done} ${titleOf(label)} stands under Blocks here, and you can change it too.`
    : `I could not share ${titleOf(label)}: ${shared.message}`;
  return yield* answer(turn, text, shared.ok ? `shared ${titleOf(label)}` : `could not share ${titleOf(label)}`);
}

const unreadable = (turn: Turn, label: string, result: ActionResult): Doing => {
  const why = result.ok ? "it is no list" : result.message;
  return result.ok || result.code !== "not_found"
    ? answer(turn, `I could not read ${titleOf(label)}: ${why}`, "could not read a list")
    : answer(turn, `I keep no such list yet: say "add milk to ${titleOf(label)}".`, "there is no such list");
};

export const lists: Rule = {
  forAgents: true,
  match: (turn) => {
    if (!canKeep(turn)) return undefined;
    const request = withoutEnd(turn.request);
    const [, added, addedTo] = adding.exec(request) ?? [];
    if (added !== undefined) return addTo(turn, labelOf(addedTo), wantedIn(added));
    const [, crossed, crossedOn] = crossing.exec(request) ?? [];
    if (crossed !== undefined && /\b(?:off|out|list)\b/i.test(request)) {
      return crossOff(turn, labelOf(crossedOn), wantedIn(crossed));
    }
    const shared = sharing.exec(request);
    if (shared) return share(turn, labelOf(shared[1]));
    const asked = asking.exec(turn.request);
    return asked ? tell(turn, labelOf(asked[1])) : undefined;
  },
};
