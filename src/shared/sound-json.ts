import { ColloquyError, type Issue } from "./errors.ts";

/** How deep JSON from outside may nest. What is deeper could be parsed, but neither checked nor written again. */
export const maxJsonDepth = 64;

type Held = { value: unknown; path: string; depth: number };

const illFormed = "must be well-formed Unicode, without halves of surrogate pairs";

/**
 * What makes a parsed JSON value unfit for any schema to look at: nesting without end, and texts that no database
 * gives back as they were, and a field that objects lose on the way. Undefined where it is sound.
 */
export const unsoundness = (json: unknown): Issue | undefined => {
  const waiting: Held[] = [{ value: json, path: "", depth: 0 }];
  for (let held = waiting.pop(); held; held = waiting.pop()) {
    const { value, path, depth } = held;
    if (typeof value === "string" && !value.isWellFormed()) return { path, message: illFormed };
    if (typeof value !== "object" || value === null) continue;
    if (depth === maxJsonDepth) {
      return { path: "", message: `must not nest deeper than ${maxJsonDepth} levels (maxJsonDepth)` };
    }
    for (const [name, inner] of Object.entries(value)) {
      if (!name.isWellFormed()) return { path, message: illFormed };
      if (name === "__proto__") return { path, message: "must not have a field named __proto__" };
      waiting.push({ value: inner, path: path === "" ? name : `${path}.${name}`, depth: depth + 1 });
    }
  }
  return undefined;
};

/** Refuses a body that no schema should look at. */
export const requireSound = (body: unknown): void => {
  const issue = unsoundness(body);
  if (!issue) return;
  throw new ColloquyError("invalid_request", `In the body: ${issue.path || "it"} ${issue.message}.`, {
    issues: [issue],
  });
};
