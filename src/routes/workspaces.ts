import { createRoute, z } from "@hono/zod-openapi";
import { deriveSecretKey, hashSecretKey, mintSecretKey } from "../auth/secret-keys.ts";
import { Key, NameOnly, Workspace } from "../protocol/workspace.ts";
import { ColloquyError, unwrap } from "../shared/errors.ts";
import { access } from "./access.ts";
import { createRoutes, workspaceOf } from "./house.ts";
import { doOnce } from "./idempotent.ts";
import {
  answers,
  badBody,
  badRepeat,
  IdempotencyHeaders,
  idempotencyHeader,
  jsonBody,
  problems,
} from "./route-parts.ts";

const CreatedWorkspace = z
  .object({ workspace: Workspace, key: Key, secretKey: z.string().meta({ description: "Shown this once" }) })
  .meta({ id: "CreatedWorkspace" });
const OneWorkspace = z.object({ workspace: Workspace });
const tags = ["Workspace"];

export const workspaces = createRoutes();

workspaces.openapi(
  createRoute({
    method: "post",
    path: "/v1/workspaces",
    tags,
    summary: "Create a workspace and its first secret key",
    ...access("operator"),
    request: { headers: IdempotencyHeaders, body: jsonBody(NameOnly) },
    responses: { 201: answers(CreatedWorkspace, "The workspace"), ...problems(...badBody, ...badRepeat) },
  }),
  async (context) => {
    const { ids } = context.var;
    const { name } = context.req.valid("json");
    const idempotencyKey = context.req.valid("header")[idempotencyHeader];
    if (idempotencyKey === undefined) {
      const id = ids.mint("wsp");
      const keyId = ids.mint("key");
      const secretKey = mintSecretKey(id);
      const stub = context.env.WORKSPACE.getByName(id);
      const workspace = unwrap(await stub.create({ id, name, keyId, keyHash: hashSecretKey(secretKey) }));
      return context.json({ workspace, key: { id: keyId, createdAt: workspace.createdAt }, secretKey }, 201);
    }
    // The workspace itself holds its creation's answer: it is made first, under ids that follow from the key.
    const id = ids.derive("wsp", "operator", idempotencyKey);
    const keyId = ids.derive("key", id, "first");
    const secretKey = deriveSecretKey(context.env.SIGNING_SECRET, id, keyId);
    const stub = context.env.WORKSPACE.getByName(id);
    const creation = await stub.create({ id, name, keyId, keyHash: hashSecretKey(secretKey) });
    if (!creation.ok && creation.problem.code !== "conflict") unwrap(creation);
    const request = { principal: "operator", key: `POST /v1/workspaces ${idempotencyKey}`, body: { name } };
    const answer = await doOnce(
      context,
      { ...request, workspace: stub, workspaceId: id, schema: CreatedWorkspace, sealed: true, status: 201 },
      async () => {
        const workspace = unwrap(creation.ok ? creation : await stub.describe());
        if (workspace.name !== name) {
          throw new ColloquyError(
            "idempotency_mismatch",
            "This Idempotency-Key came with another body: send a new key.",
          );
        }
        return { workspace, key: { id: keyId, createdAt: workspace.createdAt }, secretKey };
      },
    );
    return context.json(answer, 201);
  },
);

workspaces.openapi(
  createRoute({
    method: "get",
    path: "/v1/workspace",
    tags,
    summary: "The caller's workspace",
    ...access("workspace"),
    responses: { 200: answers(OneWorkspace, "The workspace"), ...problems() },
  }),
  async (context) => context.json({ workspace: unwrap(await workspaceOf(context).describe()) }, 200),
);

workspaces.openapi(
  createRoute({
    method: "patch",
    path: "/v1/workspace",
    tags,
    summary: "Rename the workspace",
    ...access("workspace"),
    request: { body: jsonBody(NameOnly) },
    responses: { 200: answers(OneWorkspace, "The workspace"), ...problems(...badBody) },
  }),
  async (context) =>
    context.json({ workspace: unwrap(await workspaceOf(context).rename(context.req.valid("json").name)) }, 200),
);
