import { createRoute, z } from "@hono/zod-openapi";
import {
  defaultSearchLimit,
  maxSearchLimit,
  QueryText,
  SearchAnswer,
  SearchMode,
  type SearchQuery,
  SearchRole,
  SearchType,
  WorkspaceSearchAnswer,
} from "../protocol/search.ts";
import { Timestamp } from "../protocol/text.ts";
import { unwrap } from "../shared/errors.ts";
import { access } from "./access.ts";
import { agentAt } from "./agents.ts";
import { createRoutes } from "./house.ts";
import { answers, pathId, problems, queryNumber } from "./route-parts.ts";
import { searchAll } from "./search-all.ts";

const tags = ["Search"];
const params = z.object({ agentId: pathId("ent", "the agent") });

/** `messages,blocks` or `message,block`: as people write a list in an address. */
const types = z
  .string()
  .max(200)
  .transform((list) => list.split(",").map((name) => name.trim().replace(/^(message|block)s$/, "$1")))
  .pipe(z.array(SearchType).min(1).max(SearchType.options.length))
  .optional()
  .meta({ type: "string", description: `Of ${SearchType.options.join(", ")}, with commas; all if left out` });

const query = z.object({
  q: QueryText,
  mode: SearchMode.default("auto"),
  types,
  role: SearchRole.optional(),
  from: Timestamp.optional(),
  to: Timestamp.optional(),
  limit: queryNumber(1, maxSearchLimit)
    .default(defaultSearchLimit)
    .meta({ description: "How many hits at most", default: defaultSearchLimit }),
});

const asked = ({ q, types: named, ...rest }: z.output<typeof query>): SearchQuery => ({
  ...rest,
  query: q,
  types: named ?? [],
});

/** Finding again what was said, done and kept. */
export const search = createRoutes();

search.openapi(
  createRoute({
    method: "get",
    path: "/v1/agents/{agentId}/search",
    tags,
    summary: "Search what an agent may read and has lived through",
    description:
      "Messages of its spaces, its consciousness (compacted cycles too), its blocks and archival entries. The first search begins the index: an agent with a long past is indexed in the background, and answers are `partial` until then.",
    ...access("workspace"),
    request: { params, query },
    responses: {
      200: answers(SearchAnswer, "The best hits, best first"),
      ...problems("not_found", "invalid_request", "unavailable"),
    },
  }),
  async (context) => {
    const stub = agentAt(context, context.req.valid("param").agentId);
    const { workspaceId } = context.var.principal;
    return context.json(unwrap(await stub.search(workspaceId, asked(context.req.valid("query")))), 200);
  },
);

search.openapi(
  createRoute({
    method: "get",
    path: "/v1/search",
    tags,
    summary: "Search all agents of the workspace",
    description: "An agent that cannot be reached, or takes too long, is named in `unreachable`; the others answer.",
    ...access("secretKey"),
    request: { query },
    responses: { 200: answers(WorkspaceSearchAnswer, "The best hits, best first"), ...problems("invalid_request") },
  }),
  async (context) => context.json(await searchAll(context, asked(context.req.valid("query"))), 200),
);
