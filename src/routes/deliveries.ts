import { waitUntil } from "cloudflare:workers";
import { createRoute, z } from "@hono/zod-openapi";
import { addressOf, countRequest } from "../auth/rates.ts";
import { open as openSealed } from "../auth/sealing.ts";
import { schemes } from "../auth/webhooks/schemes.ts";
import { eventId } from "../protocol/ids.ts";
import { systemClock } from "../shared/clock.ts";
import { ColloquyError, unwrap } from "../shared/errors.ts";
import { bySignature } from "./access.ts";
import { createRoutes } from "./house.ts";
import { answers, pathId, problems } from "./route-parts.ts";
import { payloadOf } from "./webhooks/payload.ts";
import { isWanted, readingOf } from "./webhooks/reading.ts";
import { sealedName } from "./webhooks/sealed-name.ts";

const Received = z
  .union([
    z.object({ eventId: eventId.meta({ description: "The agent's event: the same for the same delivery" }) }),
    z.object({
      ignored: z.enum(["greeting", "event_type"]).meta({
        description: "Why the agent is not told: the sender greets a new hook, or the hook wants other events",
      }),
    }),
  ])
  .meta({ id: "Received" });

/** Where webhook senders post to. */
export const deliveries = createRoutes();

deliveries.openapi(
  createRoute({
    method: "post",
    path: "/v1/hooks/{hookId}",
    tags: ["Webhooks"],
    summary: "Deliver a webhook",
    description:
      "Signed as the hook's scheme says, over the body exactly as it is sent. It is answered once the event is stored; the same delivery again makes no second one. Retry what is answered 429 or 5xx.",
    ...bySignature,
    request: {
      params: z.object({ hookId: pathId("hook", "the hook") }),
      body: { content: { "*/*": { schema: z.unknown().meta({ description: "JSON, a form or text, in UTF-8" }) } } },
    },
    responses: {
      202: answers(Received, "It is the agent's event now, or nothing for it"),
      ...problems("not_found", "delivery_expired", "invalid_json", "invalid_request", "payload_too_large"),
    },
  }),
  async (context) => {
    const { ids } = context.var;
    const { hookId } = context.req.valid("param");
    if (!ids.isIssued("hook", hookId)) throw new ColloquyError("not_found", "There is no such hook.");
    countRequest({ env: context.env, waitUntil }, "hook", `${hookId} ${addressOf(context.req.raw)}`);
    const agent = context.env.AGENT.getByName(ids.ownerOf("hook", hookId));
    const { workspaceId, settings, sealed } = unwrap(await agent.sealedHook(hookId));
    const secrets = await Promise.all(
      sealed.map((one) => openSealed(context.env.SIGNING_SECRET, workspaceId, sealedName(hookId), one)),
    );
    const { headers } = context.req.raw;
    const body = new Uint8Array(await context.req.arrayBuffer());
    const scheme = schemes[settings.scheme];
    const name = scheme.verify({ headers, body }, secrets, settings, systemClock.now());
    const payload = payloadOf(headers.get("content-type"), body);
    const event = scheme.eventType(headers, payload, settings);
    if (scheme.isGreeting(event)) return context.json({ ignored: "greeting" as const }, 202);
    if (!isWanted(settings.events, event)) return context.json({ ignored: "event_type" as const }, 202);
    const delivery = { name, payload: readingOf(settings, event, payload) };
    return context.json(unwrap(await agent.receive(workspaceId, hookId, delivery)), 202);
  },
);
