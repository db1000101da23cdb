import * as z from "zod";
import { hookSecretName, seal, unseal } from "../auth/sealing.ts";
import { newHookSecret, schemes } from "../auth/webhooks/schemes.ts";
import { CreateHook, Hook, type HookScheme, type HookSettings, RotateHook, UpdateHook } from "../protocol/hook.ts";
import { hookId } from "../protocol/ids.ts";
import { component } from "../protocol/text.ts";
import { ColloquyError, unwrap } from "../shared/errors.ts";
import { agentAt, type HttpContext } from "./http-context.ts";
import { Resource } from "./route.ts";
import { listOf, onePage } from "./route-parts.ts";

const secretShown = z.string().meta({ description: "What the sender signs with. Shown this once" });
const CreatedHook = component("CreatedHook", { hook: Hook, hookId, url: z.string(), secret: secretShown });
const RotatedHook = component("RotatedHook", { hook: Hook, secret: secretShown });

const withUrl = (context: HttpContext, settings: HookSettings): Hook => ({
  ...settings,
  url: new URL(`/v1/hooks/${settings.id}`, context.req.url).href,
});

/** The secret that was brought along, if its scheme takes it, or a new one. */
const secretFor = (scheme: HookScheme, own: string | undefined): string => {
  if (own === undefined) return newHookSecret(scheme);
  const message = schemes[scheme].secretFault(own);
  if (message === undefined) return own;
  throw new ColloquyError("invalid_request", `In the body: secret ${message}.`, {
    issues: [{ path: "secret", message }],
  });
};

const sealFor = ({ env, var: { principal } }: HttpContext, id: string, secret: string): Promise<string> =>
  seal(env, principal.workspaceId, hookSecretName(id), secret);

/** The hook's newest secret: a request that is sent again after a crash is answered what the first one stored. */
const storedSecret = async (context: HttpContext, agentId: string, id: string): Promise<string> => {
  const { workspaceId, sealed } = unwrap(await agentAt(context, agentId).sealedHook(id));
  return unseal(context.env, workspaceId, hookSecretName(id), sealed[0] ?? "");
};

/** The hooks of an agent. */
export const hooks = new Resource("Webhooks");

hooks.route("POST /v1/agents/{agentId}/hooks", {
  summary: "Open a way in for a webhook sender",
  description:
    "What it delivers to `url`, signed with `secret`, becomes an event of the agent. `template` picks what of the payload the agent reads (`{{payload.issue.title}}`), `events` of which types it is told.",
  access: "workspace",
  body: CreateHook,
  idempotent: "sealed",
  status: 201,
  answers: [CreatedHook, "The hook, where its sender posts to, and what it signs with"],
  problems: ["not_found", "limit_reached"],
  handle: ({ context, agent, params, body: { secret: own, ...settings }, once }) =>
    once(async (newId) => {
      const version = newId("key");
      const id = context.var.ids.deriveOwned("hook", params.agentId, version);
      const sealed = await sealFor(context, id, secretFor(settings.scheme, own));
      const hook = withUrl(context, await agent.createHook({ ...settings, id, sealed, version }));
      return { hook, hookId: id, url: hook.url, secret: await storedSecret(context, params.agentId, id) };
    }),
});

hooks.route("GET /v1/agents/{agentId}/hooks", {
  summary: "An agent's hooks, oldest first",
  access: "workspace",
  answers: [listOf(Hook), "All of them, without their secrets"],
  problems: ["not_found"],
  handle: async ({ context, agent }) => onePage((await agent.hooks()).map((settings) => withUrl(context, settings))),
});

hooks.route("PATCH /v1/agents/{agentId}/hooks/{hookId}", {
  summary: "Change a hook's name, template or events",
  description: "`null` takes the template or the choice of events away.",
  access: "workspace",
  body: UpdateHook,
  answers: [z.object({ hook: Hook }), "The hook"],
  problems: ["not_found"],
  handle: async ({ context, agent, params, body }) => ({
    hook: withUrl(context, await agent.updateHook(params.hookId, body)),
  }),
});

hooks.route("POST /v1/agents/{agentId}/hooks/{hookId}/rotate", {
  summary: "Give a hook a new secret",
  description:
    "The secret until now stays valid for `graceSeconds` (a day, if left out), so that the sender can be told of the new one meanwhile. One that was in its grace already ends at once.",
  access: "workspace",
  body: RotateHook,
  idempotent: "sealed",
  answers: [RotatedHook, "The hook, and its new secret"],
  problems: ["not_found"],
  handle: ({ context, agent, params: { agentId, hookId: id }, body, once }) =>
    once(async (newId) => {
      const { scheme } = await agent.hook(id);
      const version = newId("key");
      const sealed = await sealFor(context, id, secretFor(scheme, body.secret));
      const rotation = { sealed, version, graceMs: body.graceSeconds * 1000 };
      const hook = withUrl(context, await agent.rotateHook(id, rotation));
      return { hook, secret: await storedSecret(context, agentId, id) };
    }),
});

hooks.route("DELETE /v1/agents/{agentId}/hooks/{hookId}", {
  summary: "Close a hook",
  description: "At once. What it brought in before stays.",
  access: "workspace",
  problems: ["not_found"],
  handle: async ({ agent, params }) => agent.deleteHook(params.hookId),
});
