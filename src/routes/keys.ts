import { createRoute, z } from "@hono/zod-openapi";
import { deriveSecretKey, hashSecretKey, mintSecretKey } from "../auth/secret-keys.ts";
import { forgetKey } from "../auth/verdicts.ts";
import { Key } from "../protocol/workspace.ts";
import { unwrap } from "../shared/errors.ts";
import { access } from "./access.ts";
import { createRoutes, workspaceOf } from "./house.ts";
import { idempotently } from "./idempotent.ts";
import { answers, badRepeat, IdempotencyHeaders, idempotencyHeader, nothing, pathId, problems } from "./route-parts.ts";

const CreatedKey = z
  .object({ key: Key, secretKey: z.string().meta({ description: "Shown this once" }) })
  .meta({ id: "CreatedKey" });
const tags = ["Keys and secrets"];

export const keys = createRoutes();

keys.openapi(
  createRoute({
    method: "post",
    path: "/v1/workspace/keys",
    tags,
    summary: "Create another secret key",
    description: "To roll keys: create one, move to it, revoke the old one.",
    ...access("secretKey"),
    request: { headers: IdempotencyHeaders },
    responses: { 201: answers(CreatedKey, "The key"), ...problems("invalid_request", "limit_reached", ...badRepeat) },
  }),
  async (context) => {
    const { workspaceId } = context.var.principal;
    const isRepeatable = context.req.valid("header")[idempotencyHeader] !== undefined;
    const answer = await idempotently(context, { body: null, schema: CreatedKey, sealed: true }, async (newId) => {
      const keyId = newId("key");
      const secretKey = isRepeatable
        ? deriveSecretKey(context.env.SIGNING_SECRET, workspaceId, keyId)
        : mintSecretKey(workspaceId);
      const key = unwrap(await workspaceOf(context).addKey({ keyId, keyHash: hashSecretKey(secretKey) }));
      return { key, secretKey };
    });
    return context.json(answer, 201);
  },
);

keys.openapi(
  createRoute({
    method: "delete",
    path: "/v1/workspace/keys/{keyId}",
    tags,
    summary: "Revoke a secret key",
    description: "It stops at once here, and within 60 s everywhere. The last key cannot be revoked.",
    ...access("secretKey"),
    request: { params: z.object({ keyId: pathId("key", "the key") }) },
    responses: { 204: nothing, ...problems("not_found", "conflict") },
  }),
  async (context) => {
    const { keyId } = context.req.valid("param");
    unwrap(await workspaceOf(context).revokeKey(keyId));
    forgetKey(keyId);
    return context.body(null, 204);
  },
);
