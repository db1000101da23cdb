import type { AgentToolCall } from "../../protocol/rpc.ts";
import type { ShownField, ToolCallRelease } from "../../protocol/tool-call.ts";
import { countInvisible, escapeInvisible } from "../../shared/invisible.ts";
import { jsonOf, quote } from "../../shared/quote.ts";
import { maxShownFields } from "../bounds.ts";

/**
 * What people must see before they approve a call: tool, target, readers there, what its config sends, and its whole
 * input. Nothing is left out, whatever its fields are called. Too many fields to list stand together as JSON. Pure.
 */

/** How deep an input is listed field by field, and how long a path may be to be continued. */
const listedDepth = 8;
const listedPathCharacters = 200;

const plainKey = /^[A-Za-z_][\w-]*$/;

const pathOf = (path: string, key: string): string =>
  plainKey.test(key) ? `${path}.${key}` : `${path}[${JSON.stringify(key)}]`;

const fieldOf = (path: string, text: string): ShownField => ({
  path: escapeInvisible(path),
  text: escapeInvisible(text),
  hidden: countInvisible(path) + countInvisible(text),
});

/** A text that reads like another value stands in quotes: `"false"` is no `false`. Headers hold texts alone. */
const textOf = (path: string, text: string): string =>
  jsonOf(text) === undefined || path.startsWith("request.headers") ? text : JSON.stringify(text);

const fieldsIn = (path: string, value: unknown, depth: number): ShownField[] => {
  if (typeof value === "string") return [fieldOf(path, textOf(path, value))];
  const isEnd = depth === 0 || path.length > listedPathCharacters || typeof value !== "object" || value === null;
  const parts = isEnd ? [] : Object.entries(value);
  if (isEnd || parts.length === 0) return [fieldOf(path, JSON.stringify(value) ?? "null")];
  return parts.flatMap(([key, part]) =>
    fieldsIn(Array.isArray(value) ? `${path}[${key}]` : pathOf(path, key), part, depth - 1),
  );
};

/** In the value's order. The first depth that gives few enough fields is taken. */
const fieldsOf = (path: "input" | "request", value: unknown): ShownField[] => {
  for (const depth of [listedDepth, 1]) {
    const fields = fieldsIn(path, value, depth);
    if (fields.length <= maxShownFields) return fields;
  }
  return fieldsIn(path, value, 0);
};

type Said = Pick<AgentToolCall, "name" | "input" | "target" | "release" | "request">;

const openly = "The space is open: its agents know it everywhere.";
const secretly = "The space is confidential: its agents know it there alone.";

const releaseFields = ({ spaceId, name, readers, confidential }: ToolCallRelease): ShownField[] => [
  fieldOf("target", `a message in ${quote(name)} (${spaceId})`),
  fieldOf("readers", `${readers} now. ${confidential ? secretly : openly}`),
];

export const shownFields = ({ name, target, release, request, input }: Said): ShownField[] => [
  fieldOf("tool", name),
  ...(target === undefined ? [] : [fieldOf("target", target)]),
  ...(release === undefined ? [] : releaseFields(release)),
  ...(request === undefined ? [] : fieldsOf("request", request)),
  ...fieldsOf("input", input),
];
