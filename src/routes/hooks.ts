import { createRoute, z } from "@hono/zod-openapi";
import type { Context } from "hono";
import { seal } from "../auth/sealing.ts";
import { deriveHookSecret, schemes } from "../auth/webhooks/schemes.ts";
import { CreateHook, Hook, type HookScheme, type HookSettings, RotateHook, UpdateHook } from "../protocol/hook.ts";
import { hookId } from "../protocol/ids.ts";
import { ColloquyError, unwrap } from "../shared/errors.ts";
import { access } from "./access.ts";
import { agentAt } from "./agents.ts";
import { createRoutes, type House } from "./house.ts";
import { idempotently } from "./idempotent.ts";
import {
  answers,
  badBody,
  badRepeat,
  IdempotencyHeaders,
  jsonBody,
  listOf,
  nothing,
  onePage,
  pathId,
  problems,
} from "./route-parts.ts";
import { sealedName } from "./webhooks/sealed-name.ts";

const tags = ["Webhooks"];
const params = z.object({ agentId: pathId("ent", "the agent") });
const hookParams = params.extend({ hookId: pathId("hook", "the hook") });
const path = "/v1/agents/{agentId}/hooks";

const secretShown = z.string().meta({ description: "What the sender signs with. Shown this once" });
const OneHook = z.object({ hook: Hook });
const CreatedHook = z.object({ hook: Hook, hookId, url: z.string(), secret: secretShown }).meta({ id: "CreatedHook" });
const RotatedHook = z.object({ hook: Hook, secret: secretShown }).meta({ id: "RotatedHook" });

const withUrl = (context: Context<House>, settings: HookSettings): Hook => ({
  ...settings,
  url: new URL(`/v1/hooks/${settings.id}`, context.req.url).href,
});

/** The secret that was brought along, if its scheme takes it, or a new one that follows from `version`. */
const secretFor = (context: Context<House>, scheme: HookScheme, own: string | undefined, version: string): string => {
  if (own === undefined) return deriveHookSecret(context.env.SIGNING_SECRET, scheme, version);
  const message = schemes[scheme].secretFault(own);
  if (message === undefined) return own;
  throw new ColloquyError("invalid_request", `In the body: secret ${message}.`, {
    issues: [{ path: "secret", message }],
  });
};

const sealFor = (context: Context<House>, id: string, secret: string): Promise<string> =>
  seal(context.env.SIGNING_SECRET, context.var.principal.workspaceId, sealedName(id), secret);

/** The ways in for webhook senders, as the workspace keeps them. */
export const hooks = createRoutes();

hooks.openapi(
  createRoute({
    method: "post",
    path,
    tags,
    summary: "Open a way in for a webhook sender",
    description:
      "What it delivers to `url`, signed with `secret`, becomes an event of the agent. `template` picks what of the payload the agent reads (`{{payload.issue.title}}`), `events` of which types it is told.",
    ...access("workspace"),
    request: { params, headers: IdempotencyHeaders, body: jsonBody(CreateHook) },
    responses: {
      201: answers(CreatedHook, "The hook, where its sender posts to, and what it signs with"),
      ...problems("not_found", "limit_reached", ...badBody, ...badRepeat),
    },
  }),
  async (context) => {
    const { agentId } = context.req.valid("param");
    const { workspaceId } = context.var.principal;
    const body = context.req.valid("json");
    const answer = await idempotently(context, { body, schema: CreatedHook, sealed: true }, async (newId) => {
      const { secret: own, ...settings } = body;
      const version = newId("key");
      const id = context.var.ids.deriveOwned("hook", agentId, version);
      const secret = secretFor(context, settings.scheme, own, version);
      const sealed = await sealFor(context, id, secret);
      const created = unwrap(
        await agentAt(context, agentId).createHook(workspaceId, { ...settings, id, sealed, version }),
      );
      const hook = withUrl(context, created);
      return { hook, hookId: id, url: hook.url, secret };
    });
    return context.json(answer, 201);
  },
);

hooks.openapi(
  createRoute({
    method: "get",
    path,
    tags,
    summary: "An agent's hooks, oldest first",
    ...access("workspace"),
    request: { params },
    responses: { 200: answers(listOf(Hook), "All of them, without their secrets"), ...problems("not_found") },
  }),
  async (context) => {
    const stub = agentAt(context, context.req.valid("param").agentId);
    const all = unwrap(await stub.hooks(context.var.principal.workspaceId));
    return context.json(onePage(all.map((settings) => withUrl(context, settings))), 200);
  },
);

hooks.openapi(
  createRoute({
    method: "patch",
    path: `${path}/{hookId}`,
    tags,
    summary: "Change a hook's name, template or events",
    description: "`null` takes the template or the choice of events away.",
    ...access("workspace"),
    request: { params: hookParams, body: jsonBody(UpdateHook) },
    responses: { 200: answers(OneHook, "The hook"), ...problems("not_found", ...badBody) },
  }),
  async (context) => {
    const { agentId, hookId: id } = context.req.valid("param");
    const stub = agentAt(context, agentId);
    const hook = unwrap(await stub.updateHook(context.var.principal.workspaceId, id, context.req.valid("json")));
    return context.json({ hook: withUrl(context, hook) }, 200);
  },
);

hooks.openapi(
  createRoute({
    method: "post",
    path: `${path}/{hookId}/rotate`,
    tags,
    summary: "Give a hook a new secret",
    description:
      "The secret until now stays valid for `graceSeconds` (a day, if left out), so that the sender can be told of the new one meanwhile. One that was in its grace already ends at once.",
    ...access("workspace"),
    request: { params: hookParams, headers: IdempotencyHeaders, body: jsonBody(RotateHook) },
    responses: {
      200: answers(RotatedHook, "The hook, and its new secret"),
      ...problems("not_found", ...badBody, ...badRepeat),
    },
  }),
  async (context) => {
    const { agentId, hookId: id } = context.req.valid("param");
    const { workspaceId } = context.var.principal;
    const body = context.req.valid("json");
    const stub = agentAt(context, agentId);
    const request = { body, schema: RotatedHook, sealed: true, status: 200 };
    const answer = await idempotently(context, request, async (newId) => {
      const { scheme } = unwrap(await stub.hook(workspaceId, id));
      const version = newId("key");
      const secret = secretFor(context, scheme, body.secret, version);
      const sealed = await sealFor(context, id, secret);
      const rotation = { sealed, version, graceMs: body.graceSeconds * 1000 };
      return { hook: withUrl(context, unwrap(await stub.rotateHook(workspaceId, id, rotation))), secret };
    });
    return context.json(answer, 200);
  },
);

hooks.openapi(
  createRoute({
    method: "delete",
    path: `${path}/{hookId}`,
    tags,
    summary: "Close a hook",
    description: "At once. What it brought in before stays.",
    ...access("workspace"),
    request: { params: hookParams },
    responses: { 204: nothing, ...problems("not_found") },
  }),
  async (context) => {
    const { agentId, hookId: id } = context.req.valid("param");
    unwrap(await agentAt(context, agentId).deleteHook(context.var.principal.workspaceId, id));
    return context.body(null, 204);
  },
);
