import * as z from "zod";
import { deriveSecretKey, hashSecretKey, mintSecretKey } from "../auth/credentials.ts";
import { seal } from "../auth/sealing.ts";
import { forgetCredentials } from "../auth/verdicts.ts";
import { actorOf } from "../protocol/audit.ts";
import type { Principal } from "../protocol/principal.ts";
import { PutSecret, Secret, SecretUsed } from "../protocol/secret.ts";
import { component, Timestamp } from "../protocol/text.ts";
import { CreateKey, Key, RollKey, UpdateKey } from "../protocol/workspace.ts";
import { systemClock } from "../shared/clock.ts";
import { ColloquyError, unwrap } from "../shared/errors.ts";
import { ringOf } from "../shared/secret-ring.ts";
import { checkAgents } from "./check-references.ts";
import { agentAt, type HttpContext, workspaceOf } from "./http-context.ts";
import { Resource } from "./route.ts";
import { badPage, listOf, onePage, pageQuery } from "./route-parts.ts";

const secretKeyShown = z.string().meta({ description: "Shown this once" });
const CreatedKey = component("CreatedKey", { key: Key, secretKey: secretKeyShown });
const RolledKey = component("RolledKey", { key: Key, secretKey: secretKeyShown, previous: Key });
const OneKey = z.object({ key: Key });

/** Keys of the workspace, and secrets for tools and models, which are written here and never read back. */
export const keysAndSecrets = new Resource("Keys and secrets");

/** Agents that one request asks where a secret went. */
const maxAgentsAsked = 20;

/** A new key's text, and the key as its workspace is told. One under an `Idempotency-Key` follows from its id. */
const newKey = ({ env, var: { principal } }: HttpContext, keyId: string, isRepeatable: boolean) => {
  const { workspaceId } = principal;
  const secretKey = isRepeatable
    ? deriveSecretKey(ringOf(env).first.secret, workspaceId, keyId)
    : mintSecretKey(workspaceId, keyId);
  return { secretKey, asked: { keyId, keyHash: hashSecretKey(secretKey), by: actingKey(principal) } };
};

/** The key that asks: only secret keys come here. */
const actingKey = (principal: Principal): string => (principal.kind === "key" ? principal.keyId : "");

/** When a key is to end, in milliseconds since the epoch. */
const endIn = ({ expiresAt, expiresInSeconds }: CreateKey): number | undefined => {
  if (expiresInSeconds !== undefined) return systemClock.now() + expiresInSeconds * 1000;
  return expiresAt === undefined ? undefined : Date.parse(expiresAt);
};

keysAndSecrets.route("GET /v1/workspace/keys", {
  summary: "The workspace's secret keys",
  description: "Those that live. What a key holds between its workspace and its secret is its id without `key_`.",
  access: "secretKey",
  answers: [listOf(Key), "All of them, oldest first, without their secrets"],
  handle: async ({ context }) => onePage(unwrap(await workspaceOf(context).keys())),
});

keysAndSecrets.route("POST /v1/workspace/keys", {
  summary: "Create another secret key",
  description:
    "Of scope `full` it may do all, of `read` it may ask (`GET`), of `tokens` it makes tokens and sign-in links for people who are no admins and signs people out, of `hooks` it triggers agents. None outlives the key that makes it.",
  access: "secretKey",
  body: CreateKey,
  idempotent: "sealed",
  status: 201,
  answers: [CreatedKey, "The key"],
  problems: ["invalid_request", "invalid_time", "limit_reached"],
  handle: ({ context, body, idempotencyKey, once }) =>
    once(async (newId) => {
      const { secretKey, asked } = newKey(context, newId("key"), idempotencyKey !== undefined);
      const { name, scopes } = body;
      const workspace = workspaceOf(context);
      const key = unwrap(await workspace.addKey({ ...asked, name, scopes, expiresAt: endIn(body) }));
      // A workspace of the last release has made a key that may do all, for ever (L14).
      if (!("scopes" in key)) {
        unwrap(await workspace.revokeKey(asked.keyId));
        const detail = "A new release is going out, and this workspace has not come to it: try again in a minute.";
        throw new ColloquyError("unavailable", detail);
      }
      return { key, secretKey };
    }),
});

keysAndSecrets.route("PATCH /v1/workspace/keys/{keyId}", {
  summary: "Change a secret key's name or scopes",
  access: "secretKey",
  body: UpdateKey,
  answers: [OneKey, "The key"],
  problems: ["not_found", "conflict"],
  handle: async ({ context, workspaceId, principal, params: { keyId }, body }) => {
    const key = unwrap(await workspaceOf(context).updateKey(keyId, body, actingKey(principal)));
    forgetCredentials(workspaceId);
    return { key };
  },
});

keysAndSecrets.route("POST /v1/workspace/keys/{keyId}/roll", {
  summary: "Put another secret key in the place of one",
  description:
    "The successor has its name, scopes and end. The key until now goes on for `overlapSeconds` (a day, if left out), so that all who use it can move.",
  access: "secretKey",
  body: RollKey,
  idempotent: "sealed",
  status: 201,
  answers: [RolledKey, "The successor, and the key until now with its end"],
  problems: ["not_found", "conflict", "limit_reached"],
  handle: ({ context, workspaceId, params, body: { overlapSeconds }, idempotencyKey, once }) =>
    once(async (newId) => {
      const { secretKey, asked } = newKey(context, newId("key"), idempotencyKey !== undefined);
      const rolled = unwrap(await workspaceOf(context).rollKey(params.keyId, asked, overlapSeconds * 1000));
      forgetCredentials(workspaceId);
      return { ...rolled, secretKey };
    }),
});

keysAndSecrets.route("DELETE /v1/workspace/keys/{keyId}", {
  summary: "Revoke a secret key",
  description:
    "It stops at once here, and within 60 s everywhere, on open sockets too. The last key of scope `full` without an end cannot be revoked.",
  access: "secretKey",
  problems: ["not_found", "conflict"],
  handle: async ({ context, principal, workspaceId, params: { keyId } }) => {
    unwrap(await workspaceOf(context).revokeKey(keyId, actorOf(principal)));
    forgetCredentials(workspaceId);
  },
});

keysAndSecrets.route("GET /v1/workspace/secrets", {
  summary: "The workspace's secrets, by name",
  description: "Where each may be sent, and who may use it.",
  access: "secretKey",
  answers: [listOf(Secret), "Never the values"],
  handle: async ({ context }) => {
    return onePage(unwrap(await workspaceOf(context).secrets()));
  },
});

keysAndSecrets.route("PUT /v1/workspace/secrets/{name}", {
  summary: "Write a secret",
  description:
    "With `hosts` it is sent to these alone, also after a redirect, and with `agents` those alone use it. An admin points tools and models that use a secret only to hosts that it names; one without hosts, a secret key points anywhere.",
  access: "secretKey",
  body: PutSecret,
  problems: ["limit_reached", "unknown_reference"],
  handle: async ({ context, principal, workspaceId, params: { name }, body: { value, ...bounds } }) => {
    if (bounds.agents) await checkAgents(workspaceOf(context), bounds.agents);
    const sealed = await seal(context.env, workspaceId, name, value, bounds);
    unwrap(await workspaceOf(context).putSecret(name, sealed, actorOf(principal)));
  },
});

keysAndSecrets.route("GET /v1/workspace/secrets/{name}/uses", {
  summary: "Where a secret went",
  description:
    "By tool, MCP server or model, host, and run or call, without its value. A page is of so many agents (at most 20), oldest first, and has the newest 200 uses of each. An MCP server is told for each connection and for each call. What a space's router uses is in the audit log (`secret.used`).",
  access: "secretKey",
  query: pageQuery(maxAgentsAsked).extend({ since: Timestamp.optional().describe("Left out: all that is kept") }),
  answers: [listOf(SecretUsed), "A page"],
  problems: badPage,
  handle: async ({ context, workspaceId, params: { name }, query: { since, ...page } }) => {
    const { items: agents, nextCursor } = unwrap(await workspaceOf(context).entities({ ...page, type: "agent" }));
    const found = agents.map(async ({ id }) => {
      const told = await agentAt(context, id).secretUses(workspaceId, name, since ? Date.parse(since) : 0);
      return !told.ok && told.problem.code === "not_found" ? [] : unwrap(told);
    });
    return { items: (await Promise.all(found)).flat(), nextCursor };
  },
});

keysAndSecrets.route("DELETE /v1/workspace/secrets/{name}", {
  summary: "Delete a secret",
  access: "secretKey",
  problems: ["not_found", "invalid_request"],
  handle: async ({ context, principal, params }) =>
    unwrap(await workspaceOf(context).deleteSecret(params.name, actorOf(principal))),
});
