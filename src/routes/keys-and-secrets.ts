import { z } from "zod";
import { deriveSecretKey, hashSecretKey, mintSecretKey } from "../auth/credentials.ts";
import { seal } from "../auth/sealing.ts";
import { forgetKey } from "../auth/verdicts.ts";
import { component, Label } from "../protocol/text.ts";
import { Key, PutSecret } from "../protocol/workspace.ts";
import { unwrap } from "../shared/errors.ts";
import { workspaceOf } from "./http-context.ts";
import { Resource } from "./route.ts";
import { listOf, onePage } from "./route-parts.ts";

const CreatedKey = component("CreatedKey", {
  key: Key,
  secretKey: z.string().meta({ description: "Shown this once" }),
});

/** What opens the workspace, and secrets for tools and models, which are written here and never read back. */
export const keysAndSecrets = new Resource("Keys and secrets");

keysAndSecrets.route("POST /v1/workspace/keys", {
  summary: "Create another secret key",
  description: "To roll keys: create one, move to it, revoke the old one.",
  access: "secretKey",
  idempotent: "sealed",
  status: 201,
  answers: [CreatedKey, "The key"],
  problems: ["invalid_request", "limit_reached"],
  handle: ({ context, workspaceId, idempotencyKey, once }) =>
    once(async (newId) => {
      const keyId = newId("key");
      const secretKey =
        idempotencyKey === undefined
          ? mintSecretKey(workspaceId)
          : deriveSecretKey(context.env.SIGNING_SECRET, workspaceId, keyId);
      const key = unwrap(await workspaceOf(context).addKey({ keyId, keyHash: hashSecretKey(secretKey) }));
      return { key, secretKey };
    }),
});

keysAndSecrets.route("DELETE /v1/workspace/keys/{keyId}", {
  summary: "Revoke a secret key",
  description: "It stops at once here, and within 60 s everywhere. The last key cannot be revoked.",
  access: "secretKey",
  problems: ["not_found", "conflict"],
  handle: async ({ context, params: { keyId } }) => {
    unwrap(await workspaceOf(context).revokeKey(keyId));
    forgetKey(keyId);
  },
});

keysAndSecrets.route("GET /v1/workspace/secrets", {
  summary: "The names of the workspace's secrets",
  access: "secretKey",
  answers: [listOf(z.object({ name: Label })), "The names, never the values"],
  handle: async ({ context }) => {
    const names = unwrap(await workspaceOf(context).secretNames());
    return onePage(names.map((name) => ({ name })));
  },
});

keysAndSecrets.route("PUT /v1/workspace/secrets/{name}", {
  summary: "Write a secret",
  access: "secretKey",
  body: PutSecret,
  problems: ["limit_reached"],
  handle: async ({ context, workspaceId, params: { name }, body }) => {
    const sealed = await seal(context.env.SIGNING_SECRET, workspaceId, name, body.value);
    unwrap(await workspaceOf(context).putSecret(name, sealed));
  },
});

keysAndSecrets.route("DELETE /v1/workspace/secrets/{name}", {
  summary: "Delete a secret",
  access: "secretKey",
  problems: ["not_found", "invalid_request"],
  handle: async ({ context, params }) => unwrap(await workspaceOf(context).deleteSecret(params.name)),
});
