import * as z from "zod";
import { ExpiringMap } from "../auth/expiring-map.ts";
import { actorOf, hourly } from "../protocol/audit.ts";
import { spaceId } from "../protocol/ids.ts";
import { noteReading } from "../protocol/last-release.ts";
import { systemClock } from "../shared/clock.ts";
import { ColloquyError, unwrap } from "../shared/errors.ts";
import { compartmentId } from "../shared/ids.ts";
import { type HttpContext, spaceAt, workspaceOf } from "./http-context.ts";
import { requireReaderOf } from "./in-space.ts";
import { misshapen } from "./problems.ts";

/**
 * `?space=` on the routes of an agent's mind: what the agent has from that confidential space, its compartment. Without
 * it the routes reach the agent's open mind, and nothing of a compartment shows there.
 */
export const MindQuery = z.object({
  space: spaceId.optional().meta({
    description:
      "A confidential space: of what the agent has from there alone. For the workspace's secret key, and for members of that space who may ask without it",
    example: "spc_…",
  }),
});

/** The space that a query names, if it does. */
export const askedSpace = (query: unknown): string | undefined => {
  const parsed = MindQuery.safeParse(query);
  if (!parsed.success) throw misshapen(parsed.error, "query");
  return parsed.data.space;
};

/** The compartment, which owns the ids of what lives in it. A space that was never issued has none (S6). */
export const mindIdOf = ({ var: { ids } }: HttpContext, agentId: string, space: string): string => {
  if (!ids.isIssued("spc", space)) throw new ColloquyError("not_found", "There is nothing with this space.");
  return compartmentId(ids, agentId, space);
};

/** The looks into agents' minds that this isolate had noted. */
const looks = new ExpiringMap<true>(60 * 60_000, 10_000);

/** An admin has read what an agent keeps, so also words from where the admin may not be: noted once in an hour. */
export const noteLook = async (context: HttpContext, agentId: string): Promise<void> => {
  const { principal } = context.var;
  if (principal.kind === "key") return;
  const actor = actorOf(principal);
  const once = hourly(systemClock.now(), "agent.read", agentId, actor.id);
  if (looks.get(once)) return;
  await noteReading(workspaceOf(context), { action: "agent.read", actor, target: agentId, once });
  looks.set(once, true);
};

/** Refuses who may not read what the agent has from this space (C19). The space says who is in it now. */
export const requireReader = async (context: HttpContext, spaceId: string): Promise<void> => {
  const { principal } = context.var;
  const space = unwrap(await spaceAt(context, spaceId).describe(principal));
  if (space.confidential) return requireReaderOf(space, principal);
  const message = "names an open space: what the agent has from there is in its open mind. Leave it out";
  throw new ColloquyError("invalid_request", `In the query: space ${message}.`, {
    issues: [{ path: "space", message }],
  });
};
