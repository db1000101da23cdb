import { z } from "zod";
import { deriveSecretKey, hashSecretKey, mintSecretKey } from "../auth/credentials.ts";
import { forgetKey } from "../auth/verdicts.ts";
import { Key } from "../protocol/workspace.ts";
import { unwrap } from "../shared/errors.ts";
import { workspaceOf } from "./http-context.ts";
import { Resource } from "./route.ts";

const CreatedKey = z
  .object({ key: Key, secretKey: z.string().meta({ description: "Shown this once" }) })
  .meta({ id: "CreatedKey" });

export const keys = new Resource("Keys and secrets");

keys.route("POST /v1/workspace/keys", {
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

keys.route("DELETE /v1/workspace/keys/{keyId}", {
  summary: "Revoke a secret key",
  description: "It stops at once here, and within 60 s everywhere. The last key cannot be revoked.",
  access: "secretKey",
  problems: ["not_found", "conflict"],
  handle: async ({ context, params: { keyId } }) => {
    unwrap(await workspaceOf(context).revokeKey(keyId));
    forgetKey(keyId);
  },
});
