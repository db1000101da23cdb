import type { MiddlewareHandler } from "hono";
import { createMiddleware } from "hono/factory";
import { ColloquyError } from "../shared/errors.ts";
import type { House } from "./house.ts";

/** How deep a body may nest. What is deeper could be parsed, but neither checked nor written again without end. */
const maxBodyDepth = 64;

type Held = { value: unknown; path: string; depth: number };

const refused = (path: string, message: string): ColloquyError =>
  new ColloquyError("invalid_request", `In the body: ${path || "it"} ${message}.`, { issues: [{ path, message }] });

const requireWellFormed = (text: string, path: string): void => {
  if (!text.isWellFormed()) throw refused(path, "must be well-formed Unicode, without halves of surrogate pairs");
};

/** Refuses what no schema has to look at: nesting without end, and texts that no database gives back as they were. */
export const requireSound = (body: unknown): void => {
  const waiting: Held[] = [{ value: body, path: "", depth: 0 }];
  for (let held = waiting.pop(); held; held = waiting.pop()) {
    const { value, path, depth } = held;
    if (typeof value === "string") requireWellFormed(value, path);
    if (typeof value !== "object" || value === null) continue;
    if (depth === maxBodyDepth) throw refused("", `must not nest deeper than ${maxBodyDepth} levels (maxBodyDepth)`);
    for (const [name, inner] of Object.entries(value)) {
      requireWellFormed(name, path);
      waiting.push({ value: inner, path: path === "" ? name : `${path}.${name}`, depth: depth + 1 });
    }
  }
};

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // the route's own validation says what is wrong with it
  }
};

/** Of every guarded route: a body is sound before a schema reads it. */
export const soundBody: MiddlewareHandler<House> = createMiddleware<House>(async (context, next) => {
  if (context.req.raw.body !== null) requireSound(parsed(await context.req.text()));
  await next();
});
