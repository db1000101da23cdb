import * as z from "zod";
import {
  defaultSearchLimit,
  maxSearchLimit,
  SearchAnswer,
  SearchQuery,
  SearchType,
  WorkspaceSearchAnswer,
} from "../protocol/search.ts";
import { ColloquyError, unwrap } from "../shared/errors.ts";
import { withTimeout, workOff } from "../shared/timeouts.ts";
import { agentAt, type HttpContext, workspaceOf } from "./http-context.ts";
import { Resource } from "./route.ts";
import { limitQuery } from "./route-parts.ts";

/** `messages,blocks` or `message,block`: as people write a list in an address. */
const types = z
  .string()
  .max(200)
  .transform((list) => list.split(",").map((name) => name.trim().replace(/^(message|block)s$/, "$1")))
  .pipe(z.array(SearchType).min(1).max(SearchType.options.length))
  .optional()
  .meta({ type: "string", description: `Of ${SearchType.options.join(", ")}, with commas; all if left out` });

const { query: q, ...fields } = SearchQuery.shape;
const limit = limitQuery(maxSearchLimit, defaultSearchLimit, "How many hits at most");
const query = z.object({ q, ...fields, types, limit });

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
  mind: true,
  query,
  answers: [SearchAnswer, "The best hits, best first"],
  problems: ["not_found", "invalid_request", "unavailable"],
  handle: ({ agent, query: asked }) => agent.search(searchQuery(asked)),
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

/** Agents that one search of a workspace asks, how many at a time, and how long each has. */
const maxSearchedAgents = 200;
const maxSearchedAtOnce = 6;
export const agentTimeoutMs = 10_000;

type Asked = { agentId: string; answer?: SearchAnswer; code?: string };

const ask = async (context: HttpContext, agentId: string, query: SearchQuery): Promise<Asked> => {
  try {
    const asked = agentAt(context, agentId).search(context.var.principal.workspaceId, query);
    return { agentId, answer: unwrap(await withTimeout(agentTimeoutMs, asked)) };
  } catch (error) {
    return { agentId, code: error instanceof ColloquyError ? error.code : "unavailable" };
  }
};

/** Oldest first. */
const agentsOf = async (context: HttpContext): Promise<{ ids: string[]; more: boolean }> => {
  const ids: string[] = [];
  let cursor: string | undefined;
  do {
    const page = unwrap(await workspaceOf(context).entities({ type: "agent", limit: 100, cursor }));
    ids.push(...page.items.map(({ id }) => id));
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined && ids.length < maxSearchedAgents);
  return { ids: ids.slice(0, maxSearchedAgents), more: cursor !== undefined || ids.length > maxSearchedAgents };
};

type Hit = WorkspaceSearchAnswer["items"][number];

/** A message or a shared block that several agents may read is one hit. */
const keyOf = ({ type, id, agentId, source }: Hit): string => {
  if (type === "message") return id;
  return type === "block" ? `${source.authorId} block ${source.label}` : `${agentId} ${type} ${id}`;
};

/** Each agent ranks its own; what several may read is answered once, as the one who ranks it best has it. */
const merged = (hits: Hit[], most: number): Hit[] => {
  const ranked = hits.toSorted((one, other) => other.score - one.score);
  const same = Map.groupBy(ranked, keyOf);
  return [...same.values()].flatMap(([best]) => best ?? []).slice(0, most);
};

/** Asks every agent of the caller's workspace, some at a time. One that does not answer fails none of the others. */
const searchAll = async (context: HttpContext, query: SearchQuery): Promise<WorkspaceSearchAnswer> => {
  const { ids, more } = await agentsOf(context);
  const asked: Asked[] = [];
  await workOff([...ids], maxSearchedAtOnce, async (id) => asked.push(await ask(context, id, query)));
  const unreachable = asked.flatMap(({ agentId, code }) => (code === undefined ? [] : [{ agentId, code }]));
  const notes = [
    ...new Set(asked.flatMap(({ answer }) => answer?.notes ?? [])),
    ...(more ? [`only the ${maxSearchedAgents} oldest agents were asked (maxSearchedAgents)`] : []),
  ];
  const hits = asked.flatMap(({ agentId, answer }) => answer?.items.map((hit) => ({ ...hit, agentId })) ?? []);
  return {
    items: merged(hits, query.limit),
    nextCursor: null,
    partial: notes.length > 0 || unreachable.length > 0,
    notes,
    unreachable,
  };
};
