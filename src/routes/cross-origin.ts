import { cors } from "hono/cors";
import { createMiddleware } from "hono/factory";

/** Answers a browser's preflight. */
const preflight = cors({
  origin: "*",
  allowMethods: ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
  allowHeaders: ["authorization", "content-type", "idempotency-key", "last-event-id", "x-entity-id"],
  maxAge: 24 * 60 * 60,
});
const exposed = ["allow", "idempotency-replayed", "www-authenticate"].join(",");

/**
 * Pages of any origin may call the API. Nothing here is believed because of where it comes from: every request
 * carries its token itself, there are no cookies, and credentials of the browser's own are never allowed.
 *
 * The headers are set on the answer that there is: made before it, as `cors` does, they are a second response that is
 * merged into it.
 */
export const crossOrigin = createMiddleware(async (context, next) => {
  if (context.req.method === "OPTIONS") return preflight(context, next);
  await next();
  const { headers, status } = context.res;
  // The opened socket is an actor's own answer, and no browser looks for them on it.
  if (status === 101) return;
  headers.set("access-control-allow-origin", "*");
  headers.set("access-control-expose-headers", exposed);
});
