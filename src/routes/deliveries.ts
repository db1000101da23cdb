import { waitUntil } from "cloudflare:workers";
import * as z from "zod";
import { addressOf, countRequest } from "../auth/rates.ts";
import { openRoot, rootHeader } from "../auth/root-header.ts";
import { hookSecretName, unseal } from "../auth/sealing.ts";
import { schemes } from "../auth/webhooks/schemes.ts";
import { eventId } from "../protocol/ids.ts";
import { systemClock } from "../shared/clock.ts";
import { ColloquyError, unwrap } from "../shared/errors.ts";
import { agentAt } from "./http-context.ts";
import { Resource } from "./route.ts";
import { RootHeaders } from "./route-parts.ts";
import { isWanted, payloadOf, readingOf } from "./webhook-payload.ts";

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

/** The addresses that webhook senders post to. */
export const deliveries = new Resource("Webhooks");

deliveries.route("POST /v1/hooks/{hookId}", {
  summary: "Deliver a webhook",
  description:
    "Signed as the hook's scheme says, over the body exactly as it is sent. It is answered once the event is stored; the same delivery again makes no second one. Retry what is answered 429 or 5xx.",
  access: "signature",
  headers: RootHeaders,
  ownBody: { "*/*": { schema: z.unknown().meta({ description: "JSON, a form or text, in UTF-8" }) } },
  status: 202,
  answers: [Received, "It is the agent's event now, or nothing for it"],
  problems: ["not_found", "delivery_expired", "invalid_json", "invalid_request", "payload_too_large"],
  handle: async ({ context, params: { hookId }, headers: { [rootHeader]: chain } }) => {
    const { ids } = context.var;
    if (!ids.isIssued("hook", hookId)) throw new ColloquyError("not_found", "There is no such hook.");
    const { raw } = context.req;
    countRequest({ env: context.env, waitUntil }, "hook", `${hookId} ${addressOf(raw)}`);
    const agent = agentAt(context, ids.ownerOf("hook", hookId));
    const { workspaceId, settings, sealed } = unwrap(await agent.sealedHook(hookId));
    const secrets = await Promise.all(
      sealed.map((one) => unseal(context.env, workspaceId, hookSecretName(hookId), one)),
    );
    const { headers } = raw;
    const body = new Uint8Array(await context.req.arrayBuffer());
    const scheme = schemes[settings.scheme];
    const name = scheme.verify({ headers, body }, secrets, settings, systemClock.now());
    const payload = payloadOf(headers.get("content-type"), body);
    const event = scheme.eventType(headers, payload, settings);
    if (scheme.isGreeting(event)) return { ignored: "greeting" as const };
    if (!isWanted(settings.events, event)) return { ignored: "event_type" as const };
    const root = await openRoot(context.env, workspaceId, chain, systemClock.now());
    const delivery = { name, payload: readingOf(settings, event, payload), root };
    return unwrap(await agent.receive(workspaceId, hookId, delivery));
  },
});
