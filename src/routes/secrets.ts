import { z } from "zod";
import { seal } from "../auth/sealing.ts";
import { Label } from "../protocol/text.ts";
import { PutSecret } from "../protocol/workspace.ts";
import { unwrap } from "../shared/errors.ts";
import { workspaceOf } from "./http-context.ts";
import { Resource } from "./route.ts";
import { listOf, onePage } from "./route-parts.ts";

/** Secrets for tools and models: written here, never read back. */
export const secrets = new Resource("Keys and secrets");

secrets.route("GET /v1/workspace/secrets", {
  summary: "The names of the workspace's secrets",
  access: "secretKey",
  answers: [listOf(z.object({ name: Label })), "The names, never the values"],
  handle: async ({ context }) => {
    const names = unwrap(await workspaceOf(context).secretNames());
    return onePage(names.map((name) => ({ name })));
  },
});

secrets.route("PUT /v1/workspace/secrets/{name}", {
  summary: "Write a secret",
  access: "secretKey",
  body: PutSecret,
  problems: ["limit_reached"],
  handle: async ({ context, workspaceId, params: { name }, body }) => {
    const sealed = await seal(context.env.SIGNING_SECRET, workspaceId, name, body.value);
    unwrap(await workspaceOf(context).putSecret(name, sealed));
  },
});

secrets.route("DELETE /v1/workspace/secrets/{name}", {
  summary: "Delete a secret",
  access: "secretKey",
  problems: ["not_found", "invalid_request"],
  handle: async ({ context, params }) => unwrap(await workspaceOf(context).deleteSecret(params.name)),
});
