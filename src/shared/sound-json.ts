import type * as z from "zod";
import { ColloquyError, type Issue } from "./errors.ts";

/** The depth to which JSON from outside may nest. Deeper JSON can be parsed, but neither checked nor written again. */
export const maxJsonDepth = 64;
/** The most values that JSON from outside may hold. Each is gone through several times, and others wait meanwhile. */
export const maxJsonValues = 40_000;

const illFormed = "must be well-formed Unicode, without halves of surrogate pairs";
const tooDeep = `must not nest deeper than ${maxJsonDepth} levels (maxJsonDepth)`;

/** A fault, and the names that lead to it, the innermost first. */
type Fault = { message: string; names: string[] };

/** Zod compares a length before it knows whether it is a text's. Of some objects no number can be made. */
const isComparable = (length: unknown): boolean => {
  try {
    return typeof Number(length) === "number";
  } catch {
    return false;
  }
};

const faultIn = (value: unknown, depth: number): Fault | undefined => {
  if (typeof value === "string" && !value.isWellFormed()) return { message: illFormed, names: [] };
  if (typeof value !== "object" || value === null) return undefined;
  if (depth === maxJsonDepth) return { message: tooDeep, names: [] };
  const names = Object.keys(value);
  for (const name of names) {
    if (!name.isWellFormed()) return { message: illFormed, names: [] };
    if (name === "__proto__") return { message: "must not have a field named __proto__", names: [] };
  }
  const inner = Object.values(value);
  for (let index = names.length - 1; index >= 0; index -= 1) {
    const name = names[index] ?? "";
    if ((name === "length" || name === "size") && !isComparable(inner[index])) {
      return { message: "must be what can be compared: rename what it holds", names: [name] };
    }
    const fault = faultIn(inner[index], depth + 1);
    if (fault) return { ...fault, names: [...fault.names, name] };
  }
  return undefined;
};

/**
 * Why a parsed JSON value is refused before any schema sees it. It nests too deeply, has ill-formed text that no
 * database gives back as it was, has a field that objects lose, or a length that nothing compares with. Undefined if it is sound.
 */
export const unsoundness = (json: unknown): Issue | undefined => {
  const fault = faultIn(json, 0);
  if (!fault) return undefined;
  const path = fault.message === tooDeep ? [] : fault.names.toReversed();
  return { path: path.join(".").replace(/^\.+/, ""), message: fault.message };
};

/** Where a text that begins at `from` ends: at the quote that no backslash escapes. */
const endOfText = (json: string, from: number): number => {
  for (let at = json.indexOf('"', from); at >= 0; at = json.indexOf('"', at + 1)) {
    let before = at;
    while (before > from && json[before - 1] === "\\") before -= 1;
    if ((at - before) % 2 === 0) return at;
  }
  return json.length;
};

/** Why JSON is refused before it is parsed: that takes long where it holds very much or nests very deeply. */
export const excess = (text: string, most = maxJsonValues, bound = "maxJsonValues"): Issue | undefined => {
  // A value takes two characters at least.
  if (text.length <= 2 * most) return undefined;
  let [depth, values] = [0, 1];
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    if (character === '"') at = endOfText(text, at + 1);
    const isOpening = character === "[" || character === "{";
    if (isOpening) depth += 1;
    else if (character === "]" || character === "}") depth -= 1;
    if (isOpening || character === ",") values += 1;
    if (depth > maxJsonDepth) return { path: "", message: tooDeep };
    if (values > most) return { path: "", message: `must hold at most ${most} values (${bound})` };
  }
  return undefined;
};

/** The JSON that a body is; undefined where it is none. Refuses what is not sound. */
export const soundJsonIn = (body: string): z.core.util.JSONType | undefined => {
  const refused = excess(body);
  let json: z.core.util.JSONType = null;
  try {
    if (!refused) json = JSON.parse(body);
  } catch {
    return undefined;
  }
  const issue = refused ?? unsoundness(json);
  if (!issue) return json;
  const detail = `In the body: ${issue.path || "it"} ${issue.message}.`;
  throw new ColloquyError("invalid_request", detail, { issues: [issue] });
};
