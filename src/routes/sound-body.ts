import type { MiddlewareHandler } from "hono";
import { createMiddleware } from "hono/factory";
import { ColloquyError } from "../shared/errors.ts";
import { unsoundness } from "../shared/sound-json.ts";
import type { House } from "./house.ts";

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // the route's own validation says what is wrong with it
  }
};

/** Refuses a body that no schema should look at. */
export const requireSound = (body: unknown): void => {
  const issue = unsoundness(body);
  if (!issue) return;
  throw new ColloquyError("invalid_request", `In the body: ${issue.path || "it"} ${issue.message}.`, {
    issues: [issue],
  });
};

/** Of every guarded route: a body is sound before a schema reads it. */
export const soundBody: MiddlewareHandler<House> = createMiddleware<House>(async (context, next) => {
  const text = await context.req.text();
  if (text !== "") requireSound(parsed(text));
  await next();
});
