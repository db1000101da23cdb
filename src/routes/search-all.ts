import type { SearchAnswer, SearchQuery, WorkspaceSearchAnswer } from "../protocol/search.ts";
import { ColloquyError, unwrap } from "../shared/errors.ts";
import { withTimeout } from "../shared/timeouts.ts";
import { agentAt, type HttpContext, workspaceOf } from "./http-context.ts";

/** Agents that one search of a workspace asks, how many at a time, and how long each has. */
const maxSearchedAgents = 200;
const maxSearchedAtOnce = 6;
export const agentTimeoutMs = 10_000;

type Asked = { agentId: string; answer: SearchAnswer } | { agentId: string; code: string };

const ask = async (context: HttpContext, agentId: string, query: SearchQuery): Promise<Asked> => {
  try {
    const { workspaceId } = context.var.principal;
    return {
      agentId,
      answer: unwrap(await withTimeout(agentTimeoutMs, agentAt(context, agentId).search(workspaceId, query))),
    };
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

/** Each agent ranks its own; a message that several may read is answered once, as the one who ranks it best has it. */
const merged = (hits: Hit[], limit: number): Hit[] => {
  const seen = new Set<string>();
  return hits
    .toSorted((one, other) => other.score - one.score)
    .filter(({ type, id, agentId }) => {
      const key = type === "message" ? id : `${agentId} ${type} ${id}`;
      const isFirst = !seen.has(key);
      seen.add(key);
      return isFirst;
    })
    .slice(0, limit);
};

/** Asks every agent of the caller's workspace, some at a time. One that does not answer fails none of the others. */
export const searchAll = async (context: HttpContext, query: SearchQuery): Promise<WorkspaceSearchAnswer> => {
  const { ids, more } = await agentsOf(context);
  const waiting = [...ids];
  const asked: Asked[] = [];
  const askNext = async (): Promise<void> => {
    for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) asked.push(await ask(context, id, query));
  };
  await Promise.all(Array.from({ length: maxSearchedAtOnce }, askNext));
  const answered = asked.flatMap((each) => ("answer" in each ? [each] : []));
  const unreachable = asked.flatMap((each) => ("code" in each ? [{ agentId: each.agentId, code: each.code }] : []));
  const notes = [
    ...new Set(answered.flatMap(({ answer }) => answer.notes)),
    ...(more ? [`only the ${maxSearchedAgents} oldest agents were asked (maxSearchedAgents)`] : []),
  ];
  const hits = answered.flatMap(({ agentId, answer }) => answer.items.map((hit) => ({ ...hit, agentId })));
  return {
    items: merged(hits, query.limit),
    nextCursor: null,
    partial: notes.length > 0 || unreachable.length > 0,
    notes,
    unreachable,
  };
};
