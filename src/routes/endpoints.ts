import * as z from "zod";
import { endpointSecretName, seal, unseal } from "../auth/sealing.ts";
import { newHookSecret } from "../auth/webhooks/schemes.ts";
import { actorOf } from "../protocol/audit.ts";
import {
  CreateEndpoint,
  Endpoint,
  EndpointDelivery,
  Redeliver,
  RollEndpoint,
  UpdateEndpoint,
} from "../protocol/endpoint.ts";
import { component } from "../protocol/text.ts";
import { ColloquyError, unwrap } from "../shared/errors.ts";
import { checkOutgoing } from "../shared/outgoing.ts";
import { type HttpContext, workspaceOf } from "./http-context.ts";
import { Resource } from "./route.ts";
import { badPage, listOf, onePage, pageQuery } from "./route-parts.ts";

const secret = z.string().meta({ description: "What deliveries are signed with. Shown this once" });
const CreatedEndpoint = component("CreatedEndpoint", { endpoint: Endpoint, secret });
const RolledEndpoint = component("RolledEndpoint", { endpoint: Endpoint, secret });
const OneEndpoint = z.object({ endpoint: Endpoint });

/** Outgoing webhooks of the workspace. */
export const endpoints = new Resource("Endpoints");

const requireReachable = ({ env }: HttpContext, url: string | undefined): void => {
  if (url === undefined) return;
  const verdict = checkOutgoing(url, { allowLoopback: env.ENVIRONMENT === "development" });
  if (verdict.ok) return;
  const message = `cannot be told: ${verdict.reason}`;
  throw new ColloquyError("invalid_request", `In the body: url ${message}.`, { issues: [{ path: "url", message }] });
};

const newSecret = ({ env, var: { principal } }: HttpContext, id: string): Promise<string> =>
  seal(env, principal.workspaceId, endpointSecretName(id), newHookSecret("standard"));

/** What is stored: a request that is sent again after a crash is answered what the first one made. */
const shown = ({ env, var: { principal } }: HttpContext, id: string, sealed: string): Promise<string> =>
  unseal(env, principal.workspaceId, endpointSecretName(id), sealed);

endpoints.route("POST /v1/workspace/endpoints", {
  summary: "Have a server told what happens",
  description:
    "Each event goes to `url` as a Standard Webhook, signed with `secret`: `{id, type, timestamp, data}`. `webhook-id` is the same at each try. A 2xx within 15 s counts; else it is tried again for three days, and then the endpoint is disabled. The events of a space come in its order. Without `spaceIds` it is told of all spaces that are not confidential. New spaces are told from their first event, others from now on.",
  access: "secretKey",
  body: CreateEndpoint,
  idempotent: "sealed",
  status: 201,
  answers: [CreatedEndpoint, "The endpoint, and what signs its deliveries"],
  problems: ["limit_reached", "unknown_reference"],
  handle: ({ context, principal, body, once }) =>
    once(async (newId) => {
      requireReachable(context, body.url);
      const id = newId("ep");
      const added = { ...body, id, sealed: await newSecret(context, id) };
      const { endpoint, sealed } = unwrap(await workspaceOf(context).addEndpoint(added, actorOf(principal)));
      return { endpoint, secret: await shown(context, id, sealed) };
    }),
});

endpoints.route("GET /v1/workspace/endpoints", {
  summary: "The workspace's endpoints, oldest first",
  access: "secretKey",
  answers: [listOf(Endpoint), "All of them, without their secrets"],
  handle: async ({ context }) => onePage(unwrap(await workspaceOf(context).endpoints())),
});

endpoints.route("PATCH /v1/workspace/endpoints/{endpointId}", {
  summary: "Change an endpoint, stop it, or have it go on",
  description: "What waits is sent as the endpoint is now. `null` takes `spaceIds` or `description` away.",
  access: "secretKey",
  body: UpdateEndpoint,
  answers: [OneEndpoint, "The endpoint"],
  problems: ["not_found", "unknown_reference"],
  handle: async ({ context, principal, params, body }) => {
    requireReachable(context, body.url);
    const updated = await workspaceOf(context).updateEndpoint(params.endpointId, body, actorOf(principal));
    return { endpoint: unwrap(updated) };
  },
});

endpoints.route("POST /v1/workspace/endpoints/{endpointId}/roll", {
  summary: "Give an endpoint a new secret",
  description: "For `overlapSeconds` (a day, if left out) deliveries bear the signature of the secret until now too.",
  access: "secretKey",
  body: RollEndpoint,
  idempotent: "sealed",
  status: 201,
  answers: [RolledEndpoint, "The endpoint, and its new secret"],
  problems: ["not_found"],
  handle: ({ context, principal, params: { endpointId: id }, body: { overlapSeconds }, once }) =>
    once(async (newId) => {
      const next = { sealed: await newSecret(context, id), version: newId("key"), overlapMs: overlapSeconds * 1000 };
      const { endpoint, sealed } = unwrap(await workspaceOf(context).rollEndpoint(id, next, actorOf(principal)));
      return { endpoint, secret: await shown(context, id, sealed) };
    }),
});

endpoints.route("DELETE /v1/workspace/endpoints/{endpointId}", {
  summary: "End an endpoint",
  description: "What waits is not sent any more.",
  access: "secretKey",
  problems: ["not_found"],
  handle: async ({ context, principal, params }) =>
    unwrap(await workspaceOf(context).deleteEndpoint(params.endpointId, actorOf(principal))),
});

endpoints.route("GET /v1/workspace/endpoints/{endpointId}/deliveries", {
  summary: "What an endpoint sent in the last seven days",
  description: "Each try, newest first: the newest 10,000.",
  access: "secretKey",
  query: pageQuery(),
  answers: [listOf(EndpointDelivery), "A page"],
  problems: ["not_found", ...badPage],
  handle: async ({ context, workspaceId, params, query }) =>
    unwrap(await context.env.ENDPOINT.getByName(params.endpointId).deliveries(workspaceId, query)),
});

endpoints.route("POST /v1/workspace/endpoints/{endpointId}/redeliver", {
  summary: "Send again what was sent since a time",
  description:
    "All of it that happened in spaces that are there, in order, under the same ids, as it is now; then what came since. What was deleted meanwhile has no words. What waits for its next try goes at once.",
  access: "secretKey",
  body: Redeliver,
  status: 202,
  answers: [z.object({ sources: z.int() }), "How many spaces, and the workspace itself, are told again"],
  problems: ["not_found", "limit_reached"],
  handle: async ({ context, principal, workspaceId, params: { endpointId: id }, body: { from } }) => {
    const sources = unwrap(await context.env.ENDPOINT.getByName(id).redeliver(workspaceId, Date.parse(from)));
    const note = { action: "endpoint.redelivered", actor: actorOf(principal), target: id, detail: { from } } as const;
    unwrap(await workspaceOf(context).noteAudit(note));
    return { sources };
  },
});
