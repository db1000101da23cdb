import { waitUntil } from "cloudflare:workers";
import { Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import { cors } from "hono/cors";
import { isOverHttps } from "../auth/session-cookie.ts";
import { reportMetrics } from "../env/report-metrics.ts";
import { systemClock } from "../shared/clock.ts";
import { ColloquyError, problem } from "../shared/errors.ts";
import { createIds, type Ids } from "../shared/ids.ts";
import { meter } from "../shared/meter.ts";
import { type RingEnv, ringOf } from "../shared/secret-ring.ts";
import { agents } from "./agents.ts";
import { audit } from "./audit.ts";
import { blocks } from "./blocks.ts";
import { deliveries } from "./deliveries.ts";
import { deploymentOf } from "./deployment.ts";
import { endpoints } from "./endpoints.ts";
import { entities } from "./entities.ts";
import { erasures } from "./erasures.ts";
import { guests, speechPath } from "./guests.ts";
import { hooks } from "./hooks.ts";
import type { HttpEnv } from "./http-context.ts";
import { inbox } from "./inbox.ts";
import { keysAndSecrets } from "./keys-and-secrets.ts";
import { line } from "./line.ts";
import { mcpOf } from "./mcp.ts";
import { challengeOf, mcpPath } from "./mcp-metadata.ts";
import { me } from "./me.ts";
import { memoryState } from "./memory-state.ts";
import { messages } from "./messages.ts";
import { metrics } from "./metrics.ts";
import { operator } from "./operator.ts";
import { ownUsers } from "./own-users.ts";
import { plans } from "./plans.ts";
import { answerError, problemResponse } from "./problems.ts";
import { readiness } from "./readiness.ts";
import { resealing } from "./resealing.ts";
import { runs } from "./runs.ts";
import { search } from "./search.ts";
import { sessions } from "./sessions.ts";
import { spaceBlocks } from "./space-blocks.ts";
import { spaces } from "./spaces.ts";
import { stream } from "./stream.ts";
import { toolCalls } from "./tool-calls.ts";
import { importPath, transfer } from "./transfer.ts";
import { usage } from "./usage.ts";
import { workspaces } from "./workspaces.ts";

/** The most that the body of a request may hold. */
const maxBodyBytes = 1024 * 1024;

let madeIds: { secret: string; ids: Ids } | undefined;

/** This deployment's ids. Without its secrets nothing can be told from what was invented, so nothing is answered. */
const idsOf = (env: RingEnv): Ids => {
  const { secret } = ringOf(env).ids;
  if (madeIds?.secret !== secret) madeIds = { secret, ids: createIds(secret) };
  return madeIds.ids;
};

/** Browsers that came over https ask by nothing else for a year. */
const strictTransport = "max-age=31536000";

/** Answers a browser's preflight. */
const preflight = cors({
  origin: "*",
  allowMethods: ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
  allowHeaders: [
    ...["authorization", "content-type", "idempotency-key", "last-event-id", "x-entity-id", "x-workspace-id"],
    ...["mcp-protocol-version", "mcp-method", "mcp-name", "mcp-session-id"],
  ],
  maxAge: 24 * 60 * 60,
});
const exposed = ["allow", "etag", "idempotency-replayed", "www-authenticate"].join(",");

export const app = new Hono<HttpEnv>();

/**
 * Pages of any origin may call the API, by a token of their own. The browser's own credentials are never allowed to
 * them, and a session's cookie counts for its own origin alone (`auth/session-cookie.ts`). What is answered is for the
 * caller only, and nobody keeps it, unless the route says otherwise (C15).
 *
 * The headers are set on the finished answer. Made before it, as `cors` does, they are a second response that is merged
 * into it.
 */
app.use(async (context, next) => {
  if (context.req.method === "OPTIONS") return preflight(context, next);
  await next();
  const { headers, status } = context.res;
  meter.count("requests", { route: context.get("route") ?? "none", status });
  waitUntil(reportMetrics(context.env, systemClock.now()));
  // The opened socket is an actor's own answer, and no browser looks for them on it.
  if (status === 101) return;
  if (status === 401 && context.req.path === mcpPath) headers.set("www-authenticate", challengeOf(context));
  headers.set("access-control-allow-origin", "*");
  headers.set("access-control-expose-headers", exposed);
  headers.set("x-content-type-options", "nosniff");
  if (isOverHttps(context.req.raw, context.env.PUBLIC_ORIGIN))
    headers.set("strict-transport-security", strictTransport);
  if (!headers.has("cache-control")) headers.set("cache-control", "no-store");
});

const limited = bodyLimit({
  maxSize: maxBodyBytes,
  onError: () => {
    throw new ColloquyError("payload_too_large", `A body holds at most ${maxBodyBytes} bytes (maxBodyBytes).`);
  },
});
/** Whether the body says how long it is, and that is short enough: then it need not be touched. */
const isShort = (request: Request): boolean => {
  const declared = request.headers.get("content-length");
  return declared !== null && Number(declared) <= maxBodyBytes && !request.headers.has("transfer-encoding");
};
app.use((context, next) => {
  context.set("ids", idsOf(context.env));
  // The body of an import, and that of a speech, are bounded as they are read.
  const isBounded = context.req.path === importPath || speechPath.test(context.req.path);
  return isBounded || isShort(context.req.raw) ? next() : limited(context, next);
});

export const routes = [
  workspaces,
  operator,
  audit,
  usage,
  resealing,
  keysAndSecrets,
  endpoints,
  ownUsers,
  entities,
  erasures,
  sessions,
  agents,
  transfer,
  inbox,
  hooks,
  deliveries,
  runs,
  guests,
  memoryState,
  blocks,
  spaceBlocks,
  plans,
  search,
  spaces,
  messages,
  toolCalls,
  stream,
  line,
  me,
].flatMap((resource) => resource.routes);
routes.push(
  ...mcpOf([...routes], (request, env) => app.fetch(request, env)).routes,
  ...deploymentOf(routes).routes,
  ...readiness.routes,
  ...metrics.routes,
);

/** Whether a path is one of the address, such as `/v1/agents/{agentId}`. */
const isAt = (path: string, address: string): boolean => {
  const parts = path.split("/");
  const names = address.split("/");
  const fits = (name: string, index: number) => (name.startsWith("{") ? parts[index] !== "" : parts[index] === name);
  return parts.length === names.length && names.every(fits);
};

for (const { method, path, respond } of routes) {
  app.on(method, path.replaceAll(/\{(\w+)\}/g, ":$1"), (context) => {
    context.set("route", `${method} ${path}`);
    return respond(context);
  });
}

// An address that takes another method answers 405 with `Allow`, any other 404.
app.notFound(({ req: { path, method } }) => {
  const allowed = routes
    .filter((route) => isAt(path, route.path))
    .flatMap((route) => (route.method === "GET" ? ["GET", "HEAD"] : [route.method]));
  if (allowed.length === 0) {
    return problemResponse(problem("not_found", `There is no address ${path}: see /docs for those there are.`));
  }
  const allow = [...new Set(allowed)].sort().join(", ");
  return problemResponse(problem("method_not_allowed", `${path} takes ${allow}, not ${method}.`), { allow });
});
app.onError(answerError);
