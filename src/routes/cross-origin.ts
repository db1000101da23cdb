import { cors } from "hono/cors";

/**
 * Pages of any origin may call the API. Nothing here is believed because of where it comes from: every request
 * carries its token itself, there are no cookies, and credentials of the browser's own are never allowed.
 */
export const crossOrigin = cors({
  origin: "*",
  allowMethods: ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
  allowHeaders: ["authorization", "content-type", "idempotency-key", "last-event-id", "x-entity-id"],
  exposeHeaders: ["allow", "idempotency-replayed", "www-authenticate"],
  maxAge: 24 * 60 * 60,
});
