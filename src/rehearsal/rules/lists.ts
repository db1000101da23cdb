import * as z from "zod";
import type { ActionResult } from "../prompt-view.ts";
import { answer, callAndTell, type Doing, enter, type Rule, type Said, type Turn, toolNamed } from "../turn.ts";
import { itemsIn, slug, withoutEnd } from "../words.ts";

/**
 * A list that the agent keeps with the people of a space, as a block of memory shared with that space. "add milk to the
 * list", "cross off milk", "what is on the list?".
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

const entry = (text: string, done: boolean) => ({ text, done });
const isNamed = ({ text }: Item, wanted: string): boolean => text.toLowerCase() === wanted.toLowerCase();
const named = (items: string[]): string => items.map((item) => `"${item}"`).join(", ");
const are = (items: unknown[]): string => (items.length === 1 ? "is" : "are");

/** Loads a list in the message's space, and does something with it. */
function* withList(
  turn: Turn,
  label: string,
  doing: (list: List) => Doing,
  missing: () => Doing = () =>
    answer(turn, `I keep no such list yet: say "add milk to ${titleOf(label)}".`, "there is no such list"),
): Doing {
  if (!(yield* enter(turn.cycle, turn.event.spaceId))) return "could not enter the space";
  const result = yield { toolName: "block_load", input: { label } };
  if (!result.ok && result.code === "not_found") return yield* missing();
  const list = listIn(result);
  if (list) return yield* doing(list);
  const why = result.ok ? "it is no list" : result.message;
  return yield* answer(turn, `I could not read ${titleOf(label)}: ${why}`, "could not read a list");
}

function* begin(turn: Turn, label: string, wanted: string[]): Doing {
  const [title, texts] = [titleOf(label), named(wanted)];
  const content = wanted.map((text) => entry(text, false));
  const description = "What is still to be got and done.";
  const input = { label, type: "working", pinned: true, description, schema: { type: "list" }, content };
  const created = yield { toolName: "block_create", input };
  if (!created.ok) return yield* answer(turn, `I could not begin ${title}: ${created.message}`, "no list");
  const shared = yield { toolName: "block_share", input: { label, space: turn.event.spaceId } };
  const where = shared.ok ? " You find it under Blocks here, and can change it too." : "";
  return yield* answer(
    turn,
    `${turn.tone.done} I began ${title} with ${texts}.${where}`,
    `began ${title} with ${texts}`,
  );
}

const addTo = (turn: Turn, label: string, wanted: string[]): Doing =>
  withList(
    turn,
    label,
    ({ items, version }) => {
      const title = titleOf(label);
      const open = wanted.filter((text) => items.some((item) => isNamed(item, text) && !item.isDone));
      const fresh = wanted.filter((text) => !open.includes(text));
      const already = `${named(open)} ${are(open)} on ${title} already.`;
      if (fresh.length === 0) return answer(turn, already, "they were on it already");
      const operations = fresh.map((text) => {
        const index = items.findIndex((item) => isNamed(item, text) && item.isPlain);
        const place = index === -1 ? { op: "push_item" } : { op: "set_item", index };
        return { ...place, item: entry(text, false) };
      });
      const text = `${named(fresh)} ${are(fresh)} on ${title}.${open.length > 0 ? ` ${already}` : ""}`;
      const done: Said = [text, `added ${named(fresh)} to ${title}`];
      const failed = (why: string): Said => [`I could not add it: ${why}`, "could not add to a list"];
      return callAndTell(turn, "block_edit", { label, operations, onVersion: version }, done, failed);
    },
    () => begin(turn, label, wanted),
  );

const crossOff = (turn: Turn, label: string, wanted: string[]): Doing =>
  withList(turn, label, ({ items, version }) => {
    const title = titleOf(label);
    const found = wanted.flatMap((text) => {
      const exact = items.findIndex((item) => isNamed(item, text));
      const like = items.findIndex((item) => item.text.toLowerCase().includes(text.toLowerCase()));
      const index = exact === -1 ? like : exact;
      const item = items[index];
      return item?.isPlain ? [{ index, text: item.text }] : [];
    });
    if (found.length < wanted.length) {
      return answer(turn, `I do not find ${named(wanted)} on ${title}.`, "it is not on the list");
    }
    const operations = found.map(({ index, text }) => ({ op: "set_item", index, item: entry(text, true) }));
    const texts = named(found.map(({ text }) => text));
    const done: Said = [`I crossed off ${texts}.`, `crossed ${texts} off ${title}`];
    const failed = (why: string): Said => [`I could not cross it off: ${why}`, "could not cross it off"];
    return callAndTell(turn, "block_edit", { label, operations, onVersion: version }, done, failed);
  });

const tell = (turn: Turn, label: string): Doing =>
  withList(turn, label, ({ items }) => {
    const textsOf = (isDone: boolean): string =>
      items.flatMap((item) => (item.isDone === isDone ? item.text : [])).join(", ");
    const [open, done, title] = [textsOf(false), textsOf(true), titleOf(label)];
    const left = open === "" ? `Nothing is left on ${title}.` : `On ${title}: ${open}.`;
    const crossed = done === "" ? "" : ` Crossed off: ${done}.`;
    return answer(turn, turn.tone.dress(`${left}${crossed}`), `told what is on ${title}`);
  });

const share = (turn: Turn, label: string): Doing => {
  const title = titleOf(label);
  return callAndTell(
    turn,
    "block_share",
    { label, space: turn.event.spaceId },
    [`${title} stands under Blocks here, and you can change it too.`, `shared ${title}`],
    (reason) => [`I could not share ${title}: ${reason}`, `could not share ${title}`],
  );
};

export const lists: Rule = {
  forAgents: true,
  match: (turn) => {
    if (!toolNamed(turn, "block_edit")) return undefined;
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
