import { ArchivalEntry, CreateArchival } from "../protocol/archival.ts";
import { unwrap } from "../shared/errors.ts";
import { Resource } from "./route.ts";
import { badPage, listOf, pageQuery } from "./route-parts.ts";

/** Facts that an agent keeps beyond its context, each with its source. Search finds them. */
export const archival = new Resource("Mind");

archival.route("POST /v1/agents/{agentId}/archival", {
  summary: "Keep a fact in an agent's archive",
  description: "With who said it, where and with which message, as far as that is known. Search finds it.",
  access: "workspace",
  body: CreateArchival,
  idempotent: true,
  status: 201,
  answers: [ArchivalEntry, "The entry"],
  problems: ["not_found", "limit_reached", "text_too_long"],
  handle: ({ context, agent, workspaceId, params, body, once }) =>
    once(async (newId) => {
      const id = context.var.ids.deriveOwned("arch", params.agentId, newId("key"));
      return unwrap(await agent.archive(workspaceId, id, body));
    }),
});

archival.route("GET /v1/agents/{agentId}/archival", {
  summary: "An agent's archival entries, newest first",
  access: "workspace",
  query: pageQuery(),
  answers: [listOf(ArchivalEntry), "A page"],
  problems: ["not_found", ...badPage],
  handle: async ({ agent, workspaceId, query }) => unwrap(await agent.archival(workspaceId, query)),
});

archival.route("DELETE /v1/agents/{agentId}/archival/{archivalId}", {
  summary: "Delete an archival entry",
  access: "workspace",
  problems: ["not_found"],
  handle: async ({ agent, workspaceId, params }) => unwrap(await agent.deleteArchival(workspaceId, params.archivalId)),
});
