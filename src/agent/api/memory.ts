import type { AgentMethods } from "../../protocol/agent-rpc.ts";
import type { ArchivalEntry } from "../../protocol/archival.ts";
import type { Page, PageRequest } from "../../protocol/rpc.ts";
import { ColloquyError, unwrap } from "../../shared/errors.ts";
import { asEntry } from "../memory/archival.ts";
import { saidBySomebody } from "../memory/search/search-index.ts";
import type { RunServices } from "../run/run-services.ts";
import type { Area } from "./agent-runtime.ts";
import { cursorOf, page } from "./page.ts";

/** The answer to a deletion. `what` is named where there was nothing to delete. */
const deleted = (isGone: boolean, what: string): null => {
  if (!isGone) throw new ColloquyError("not_found", `there is no ${what}`);
  return null;
};

/** Before the cursor in the open mind's entries. */
const openCursor = "open:";

/** A compartment's own entries, then those of the open mind. */
const archivalOf = async (
  { archival, identity, env }: RunServices,
  { limit, cursor }: PageRequest,
): Promise<Page<ArchivalEntry>> => {
  const { id, workspaceId, compartmentId } = identity.get();
  const isOpen = compartmentId !== null && cursor?.startsWith(openCursor) === true;
  const own = isOpen
    ? { items: [], nextCursor: null }
    : page(archival.page(cursorOf(cursor), limit + 1), limit, (row) => row.ordinal, asEntry);
  if (compartmentId === null || own.nextCursor !== null) return own;
  const left = limit - own.items.length;
  if (left === 0) return { ...own, nextCursor: openCursor };
  const after = (isOpen && cursor?.slice(openCursor.length)) || undefined;
  const { items, nextCursor } = unwrap(
    await env.AGENT.getByName(id).archival(workspaceId, { limit: left, cursor: after }),
  );
  return {
    items: [...own.items, ...items.map((entry): ArchivalEntry => ({ ...entry, open: true }))],
    nextCursor: nextCursor && `${openCursor}${nextCursor}`,
  };
};

/** The agent's memories, goals, plans and archival entries, and search in all that it knows. */
export const memoryArea = {
  memories: ({ services }) => services.memories.list(),
  putMemory: ({ services }, key, value) => services.memories.set(key, value),
  deleteMemory: ({ services }, key) => deleted(services.memories.delete(key), `memory "${key}"`),
  goals: ({ services }) => services.goals.list(),
  putGoal: ({ services }, id, goal) => services.goals.set(id, goal),
  deleteGoal: ({ services }, id) => deleted(services.goals.delete(id), `goal "${id}"`),
  plans: ({ services }) => services.plans.list(),
  putPlan: ({ services }, id, plan, root) => services.plans.put(id, plan, root),
  deletePlan: ({ services }, id) => deleted(services.plans.delete([id]) > 0, `plan "${id}"`),
  search: ({ services }, query) => services.search.search(query),
  searchOpen: ({ services: { search, redactions } }, query, alike) => {
    const answer = search.read(query, alike);
    const items = answer.items.map((hit) => {
      const found = saidBySomebody(hit) ? { ...hit, senderType: "human" } : hit;
      const { excerpt } = redactions.clean(found, Date.parse(hit.createdAt));
      // Names go with who is erased. Of words in messages they are older.
      return { ...hit, excerpt, source: redactions.clean(hit.source, 0) };
    });
    return { ...answer, items };
  },
  archival: ({ services }, asked) => archivalOf(services, asked),
  archive: ({ services }, id, entry) => services.archival.insert({ id, ...entry }),
  deleteArchival: ({ services }, id) => deleted(services.archival.delete(id), "such archival entry"),
} satisfies Partial<Area<keyof AgentMethods>>;
