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

/** Of every guarded route: a body is sound before a schema reads it. */
export const soundBody: MiddlewareHandler<House> = createMiddleware<House>(async (context, next) => {
  const issue = context.req.raw.body === null ? undefined : unsoundness(parsed(await context.req.text()));
  if (issue) {
    const detail = `In the body: ${issue.path || "it"} ${issue.message}.`;
    throw new ColloquyError("invalid_request", detail, { issues: [issue] });
  }
  await next();
});
