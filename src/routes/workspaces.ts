import * as z from "zod";
import { deriveSecretKey, hashSecretKey, mintSecretKey } from "../auth/credentials.ts";
import { actorOf } from "../protocol/audit.ts";
import { limitsOf } from "../protocol/last-release.ts";
import { LimitsInUse } from "../protocol/limits.ts";
import { component } from "../protocol/text.ts";
import { type AuditWebhook, Key, NameOnly, UpdateWorkspace, Workspace } from "../protocol/workspace.ts";
import { ColloquyError, unwrap } from "../shared/errors.ts";
import { checkOutgoing } from "../shared/outgoing.ts";
import { type NamedSecret, ringOf } from "../shared/secret-ring.ts";
import { type HttpContext, workspaceOf } from "./http-context.ts";
import { doOnce } from "./idempotent.ts";
import { Resource } from "./route.ts";

const CreatedWorkspace = component("CreatedWorkspace", {
  workspace: Workspace,
  key: Key,
  secretKey: z.string().meta({ description: "Shown this once" }),
});
const OneWorkspace = z.object({ workspace: Workspace });

export const workspaces = new Resource("Workspace");

workspaces.route("POST /v1/workspaces", {
  summary: "Create a workspace and its first secret key",
  access: "operator",
  body: NameOnly,
  idempotent: "sealed",
  status: 201,
  answers: [CreatedWorkspace, "The workspace"],
  handle: async ({ context, body: { name }, idempotencyKey }) => {
    const { ids } = context.var;
    // The workspace itself holds its creation's answer: it is made first, under ids that follow from the key.
    const isRepeatable = idempotencyKey !== undefined;
    const id = isRepeatable ? ids.derive("wsp", "operator", idempotencyKey) : ids.mint("wsp");
    const keyId = isRepeatable ? ids.derive("key", id, "first") : ids.mint("key");
    const { first, secrets } = ringOf(context.env);
    const keyBy = ({ secret }: NamedSecret): string => deriveSecretKey(secret, id, keyId);
    let secretKey = isRepeatable ? keyBy(first) : mintSecretKey(id, keyId);
    const stub = context.env.WORKSPACE.getByName(id);
    const creation = await stub.create({ id, name, keyId, keyHash: hashSecretKey(secretKey) });
    const isThere = isRepeatable && !creation.ok && creation.problem.code === "conflict";
    if (!isThere) unwrap(creation);
    // The ring may have got a new first secret since it was made.
    const older = isThere && secrets.length > 1 ? secrets.map(keyBy) : [];
    for (const key of older) if ((await stub.verifyKey(hashSecretKey(key), true)).ok) secretKey = key;
    const make = async () => {
      const workspace = unwrap(isThere ? await stub.describe() : creation);
      if (isThere && workspace.name !== name) {
        throw new ColloquyError("idempotency_mismatch", "This Idempotency-Key came with another body: send a new key.");
      }
      return { workspace, key: Key.parse({ id: keyId, createdAt: workspace.createdAt }), secretKey };
    };
    if (!isRepeatable) return make();
    const key = `POST /v1/workspaces ${idempotencyKey}`;
    const place = { workspace: stub, workspaceId: id, principal: "operator", key };
    return doOnce(context, place, { body: { name }, schema: CreatedWorkspace, sealed: true }, make);
  },
});

workspaces.route("GET /v1/workspace", {
  summary: "The caller's workspace, what the operator allows it and what it uses of that",
  access: "workspace",
  answers: [OneWorkspace.extend(LimitsInUse.partial().shape), "The workspace"],
  handle: async ({ context }) => {
    const workspace = workspaceOf(context);
    const [described, inUse] = await Promise.all([workspace.describe(), limitsOf(workspace)]);
    return { workspace: unwrap(described), ...unwrap(inUse) };
  },
});

/** Throws where the webhook could not be told. */
const requireAuditWebhook = async (context: HttpContext, webhook: AuditWebhook | null): Promise<void> => {
  if (webhook === null) return;
  const verdict = checkOutgoing(webhook.url, { allowLoopback: context.env.ENVIRONMENT === "development" });
  if (!verdict.ok) throw new ColloquyError("invalid_request", `auditWebhook.url ${verdict.reason}.`);
  if (unwrap(await workspaceOf(context).secretNames()).includes(webhook.secret)) return;
  const remedy = `write it with PUT /v1/workspace/secrets/${webhook.secret} first`;
  throw new ColloquyError("unknown_reference", `auditWebhook.secret: the workspace has no such secret: ${remedy}.`);
};

workspaces.route("PATCH /v1/workspace", {
  summary: "Change the workspace: its name, or what it allows",
  access: "workspace",
  body: UpdateWorkspace,
  answers: [OneWorkspace, "The workspace"],
  problems: ["unknown_reference"],
  handle: async ({ context, principal, body }) => {
    if (body.impersonatedApprovals !== undefined && principal.kind !== "key") {
      throw new ColloquyError("forbidden", "Only the workspace's secret key may set impersonatedApprovals.");
    }
    if (body.auditWebhook !== undefined) {
      if (principal.kind !== "key") {
        throw new ColloquyError("forbidden", "Only the workspace's secret key may set auditWebhook.");
      }
      await requireAuditWebhook(context, body.auditWebhook);
    }
    return { workspace: unwrap(await workspaceOf(context).update(body, actorOf(principal))) };
  },
});
