import * as z from "zod";
import { forgetCredentials, forgetStanding } from "../auth/verdicts.ts";
import { actorOf } from "../protocol/audit.ts";
import { CreateErasure, Erasure } from "../protocol/erasure.ts";
import { ColloquyError, unwrap } from "../shared/errors.ts";
import { agentAt, type HttpContext, workspaceOf } from "./http-context.ts";
import { Resource } from "./route.ts";
import { badPage, listOf, pageQuery } from "./route-parts.ts";

const OneErasure = z.object({ erasure: Erasure });

/** Throws `conflict` while an import makes the agent: whoever erased it then would find it there afterwards. */
const requireWhole = async (context: HttpContext, agentId: string): Promise<void> => {
  if (!unwrap(await agentAt(context, agentId).isImporting())) return;
  throw new ColloquyError(
    "conflict",
    "The agent is being imported: wait until the import is over, or given up after an hour, and then erase it.",
  );
};

/** People, spaces, agents and workspaces, taken out of all that holds something of them. */
export const erasures = new Resource("Workspace");

erasures.route("POST /v1/erasures", {
  summary: "Erase a person, a space, an agent, or the workspace",
  description:
    "A job that visits every space, agent and compartment that may hold something, until all have let it go. Its id is the id of what is erased, and the same again answers how far it has come. A person, or a service: their messages become tombstones, their answers and their name go, agents forget both, and all that they were signed in by ends. An agent: the same, and what other agents were given of its blocks, before it ends with its compartments. A space: as by its deletion. The workspace: all that is in it, by its own secret key alone; its operator reads the report. It cannot be taken back.",
  access: "workspace",
  body: CreateErasure,
  status: 202,
  answers: [OneErasure, "The erasure, as it begins or stands"],
  problems: ["not_found", "conflict", "limit_reached"],
  handle: async ({ context, principal, workspaceId, body }) => {
    const { kind, id } = body;
    if (kind === "workspace" && principal.kind !== "key") {
      throw new ColloquyError("forbidden", "Only the workspace's own secret key erases it: ask who holds one.");
    }
    if (kind === "agent" && context.get("ids").isIssued("ent", id)) await requireWhole(context, id);
    const erasure = unwrap(await workspaceOf(context).beginErasure(body, actorOf(principal)));
    forgetStanding(workspaceId, id);
    forgetCredentials(workspaceId);
    return { erasure };
  },
});

erasures.route("GET /v1/erasures", {
  summary: "The workspace's erasures, newest first",
  access: "workspace",
  query: pageQuery(),
  answers: [listOf(Erasure), "A page"],
  problems: badPage,
  handle: async ({ context, query }) => unwrap(await workspaceOf(context).erasures(query)),
});

erasures.route("GET /v1/erasures/{erasureId}", {
  summary: "How far an erasure has come",
  description:
    "`left` counts the objects that are still to be visited, and `waiting` names the first of them. `unknown` says what cannot be known.",
  access: "workspace",
  answers: [OneErasure, "The erasure"],
  problems: ["not_found"],
  handle: async ({ context, params }) => ({
    erasure: unwrap(await workspaceOf(context).erasure(params.erasureId)),
  }),
});
