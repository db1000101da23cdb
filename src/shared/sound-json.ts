import { ColloquyError, type Issue } from "./errors.ts";

/** The depth to which JSON from outside may nest. Deeper JSON can be parsed, but neither checked nor written again. */
export const maxJsonDepth = 64;

type Held = { value: unknown; path: string; depth: number };

const illFormed = "must be well-formed Unicode, without halves of surrogate pairs";

/**
 * Why a parsed JSON value is refused before any schema sees it: it nests too deeply, has ill-formed text that no
 * database gives back as it was, or has a field that objects lose on the way. Undefined where it is sound.
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

/** Refuses a body that is not sound. */
export const requireSound = (body: unknown): void => {
  const issue = unsoundness(body);
  if (!issue) return;
  throw new ColloquyError("invalid_request", `In the body: ${issue.path || "it"} ${issue.message}.`, {
    issues: [issue],
  });
};
