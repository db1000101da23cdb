import { z } from "zod";
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
import { Resource } from "./route.ts";
import { limitQuery } from "./route-parts.ts";
import { searchAll } from "./search-all.ts";

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
  limit: limitQuery(maxSearchLimit, defaultSearchLimit, "How many hits at most"),
});

const searchQuery = ({ q, types: named = [], ...rest }: z.output<typeof query>): SearchQuery => ({
  ...rest,
  query: q,
  types: named,
});

/** Finding again what was said, done and kept. */
export const search = new Resource("Search");

search.route("GET /v1/agents/{agentId}/search", {
  summary: "Search what an agent may read and has lived through",
  description:
    "Messages of its spaces, its consciousness (compacted cycles too), its blocks and archival entries. The first search begins the index: an agent with a long past is indexed in the background, and answers are `partial` until then.",
  access: "workspace",
  query,
  answers: [SearchAnswer, "The best hits, best first"],
  problems: ["not_found", "invalid_request", "unavailable"],
  handle: async (call) => unwrap(await call.agent.search(call.workspaceId, searchQuery(call.query))),
});

search.route("GET /v1/search", {
  summary: "Search all agents of the workspace",
  description: "An agent that cannot be reached, or takes too long, is named in `unreachable`; the others answer.",
  access: "secretKey",
  query,
  answers: [WorkspaceSearchAnswer, "The best hits, best first"],
  problems: ["invalid_request"],
  handle: (call) => searchAll(call.context, searchQuery(call.query)),
});
