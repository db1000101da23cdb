import { ruleForPeople, type Said, toolNamed } from "../turn.ts";
import { capitalised, itemsIn, slug, withoutEnd } from "../words.ts";
import { callTool } from "./use-tool.ts";

/** Questions that people answer in the space: "ask us to choose a, b or c", "ask Sara to fill in her name and age". */
const everyone = /^(?:us|me|them|all|everyone|everybody|people|the (?:team|people|others))$/i;

const question = (whom: string, words: string): string =>
  everyone.test(whom) ? capitalised(words) : `${whom}, ${words}`;

const cannot = (what: string): Said => [
  `I cannot ask anybody to ${what}: I have no tool for it.`,
  `no tool to ask to ${what}`,
];

export const choose = ruleForPeople(
  /^\s*(?:ask|let|have)\s+(.+?)\s+(?:to\s+)?(?:choose|pick|select)\b:?\s*(?:between|from|among|one of)?\s*(.+)$/is,
  (turn, whom = "", text = "") => {
    const tool = toolNamed(turn, "choose");
    if (!tool) return cannot("choose");
    const [, topic, listed = text] = /^([^:]+):\s*(.+)$/s.exec(text) ?? [];
    const options = itemsIn(listed);
    if (options.length < 2) return ['I need two at least: "choose tea, coffee or water".', "too few to choose"];
    const words = `choose ${topic === undefined ? "one" : withoutEnd(topic)}`;
    return callTool(turn, { toolName: tool.name, input: { question: question(whom, words), options } });
  },
);

const types: [RegExp, Record<string, unknown>][] = [
  [/e-?mail/i, { type: "string", format: "email" }],
  [/\b(?:date|day|birthday)\b/i, { type: "string", format: "date" }],
  [/\b(?:number|amount|count|age|price|quantity|budget)\b/i, { type: "number" }],
  [/^yes\/no$/i, { type: "boolean" }],
];

/** "size (small/large)", "arrival date", "guests (number)": a property, and what may stand in it. */
const fieldOf = (words: string, index: number): [key: string, schema: Record<string, unknown>] => {
  const [, label = words, hint = ""] =
    /^(.*?)\s*\(([^)]*)\)$/.exec(words.replace(/^(?:the|their|your|her|his|our|an?)\s+/i, "")) ?? [];
  const bare = label.replace(/^(?:the|their|your|her|his|our|an?)\s+/i, "");
  const known = types.find(([pattern]) => pattern.test(hint || bare))?.[1];
  const listed = hint.includes("/") ? { type: "string", enum: hint.split("/").map((one) => one.trim()) } : undefined;
  return [
    slug(bare) || `field_${index + 1}`,
    { title: capitalised(bare), ...(known ?? listed ?? { type: "string", minLength: 1 }) },
  ];
};

export const fillIn = ruleForPeople(
  /^\s*(?:ask|let|have)\s+(.+?)\s+(?:to\s+)?fill (?:in|out)\b:?\s*(.+)$/is,
  (turn, whom = "", text = "") => {
    const tool = toolNamed(turn, "form");
    if (!tool) return cannot("fill in a form");
    const fields = itemsIn(text).map(fieldOf);
    const schema = { type: "object", properties: Object.fromEntries(fields), required: fields.map(([key]) => key) };
    return callTool(turn, { toolName: tool.name, input: { question: question(whom, "please fill this in"), schema } });
  },
);
