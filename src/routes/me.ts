import * as z from "zod";
import { ownOrigin } from "../auth/session-cookie.ts";
import { vapidKeysOf } from "../auth/vapid.ts";
import { standingOf } from "../auth/verdicts.ts";
import { ChangeSettings, Device, NewDevice, PushKey, Settings } from "../protocol/notifications.ts";
import type { PersonRpc, Self } from "../protocol/person-rpc.ts";
import { component } from "../protocol/text.ts";
import { ColloquyError, unwrap } from "../shared/errors.ts";
import { checkOutgoing } from "../shared/outgoing.ts";
import { type HttpContext, workspaceOf } from "./http-context.ts";
import { actingEntityId } from "./in-space.ts";
import { Resource } from "./route.ts";

/** A person's own settings and devices. */
export const me = new Resource("Me");

const Devices = component("Devices", { devices: z.array(Device) });

/** The person who asks. Throws `forbidden` for agents and services. */
const selfIn = async (context: HttpContext): Promise<{ person: PersonRpc; self: Self }> => {
  const { workspaceId } = context.var.principal;
  const entityId = actingEntityId(context.var.principal);
  const standing = await standingOf(workspaceOf(context), workspaceId, entityId);
  if (standing?.type !== "human") {
    throw new ColloquyError("forbidden", "Only people have settings and devices: ask as one, by X-Entity-Id.");
  }
  return { person: context.env.PERSON.getByName(entityId), self: { workspaceId, entityId } };
};

me.route("GET /v1/me/settings", {
  summary: "What alerts you",
  access: "me",
  answers: [Settings, "The settings, with the defaults of what you did not set"],
  problems: ["acting_entity_required"],
  handle: async ({ context }) => {
    const { person, self } = await selfIn(context);
    return unwrap(await person.settings(self));
  },
});

me.route("PATCH /v1/me/settings", {
  summary: "Change what alerts you",
  description:
    "What is left out stays; `null` takes away. Of a muted space `needs_you` alone alerts. In quiet hours nothing does. What does not alert is told all the same, as `quiet`.",
  access: "me",
  body: ChangeSettings,
  answers: [Settings, "The settings"],
  problems: ["acting_entity_required", "limit_reached"],
  handle: async ({ context, body }) => {
    const { person, self } = await selfIn(context);
    return unwrap(await person.changeSettings(self, body));
  },
});

me.route("GET /v1/push-key", {
  summary: "The key that browsers subscribe to Web Push with",
  access: "me",
  answers: [PushKey, "The key"],
  problems: ["not_configured"],
  handle: async ({ context }) => ({ publicKey: vapidKeysOf(context.env).publicKey }),
});

me.route("GET /v1/me/devices", {
  summary: "Your devices, oldest first",
  access: "me",
  answers: [Devices, "All of them, without their addresses and keys"],
  problems: ["acting_entity_required"],
  handle: async ({ context }) => {
    const { person, self } = await selfIn(context);
    return { devices: unwrap(await person.devices(self)) };
  },
});

const unfit = (path: string, message: string): ColloquyError =>
  new ColloquyError("invalid_request", `In the body: ${path} ${message}.`, { issues: [{ path, message }] });

/** Refuses what could never be told. */
const requireReachable = async ({ env }: HttpContext, { endpoint, keys }: NewDevice): Promise<void> => {
  const verdict = checkOutgoing(endpoint, { allowLoopback: env.ENVIRONMENT === "development" });
  if (!verdict.ok) throw unfit("endpoint", `cannot be told: ${verdict.reason}`);
  const point = Buffer.from(keys.p256dh, "base64url");
  const curve = { name: "ECDH", namedCurve: "P-256" };
  await crypto.subtle.importKey("raw", point, curve, false, []).catch(() => {
    throw unfit("keys.p256dh", "is no point of P-256: send what the browser's subscription says");
  });
};

me.route("POST /v1/me/devices", {
  summary: "Have a device told by Web Push",
  description:
    "The body is a browser's subscription, made with `GET /v1/push-key`. The same endpoint again replaces what was said of it. The device is told nothing more once the credentials that added it have ended: a session that is left, a key that is revoked. A token's short life is no such end.",
  access: "me",
  body: NewDevice,
  idempotent: true,
  status: 201,
  answers: [Device, "The device"],
  responses: {
    200: { description: "The device, as it is told from now on", content: { "application/json": { schema: Device } } },
  },
  problems: ["acting_entity_required", "limit_reached", "not_configured"],
  handle: async ({ context, principal, body, once }) => {
    const { person, self } = await selfIn(context);
    const pushKey = vapidKeysOf(context.env).publicKey;
    await requireReachable(context, body);
    const id = context.get("ids").derive("dev", self.entityId, body.endpoint);
    const origin = ownOrigin(context.req.raw, context.env.PUBLIC_ORIGIN);
    const { expirationTime: _, ...subscription } = body;
    const added = { ...subscription, id, origin, pushKey };
    let isNew = true;
    const device = await once(async () => {
      const answer = unwrap(await person.addDevice(self, added, principal));
      ({ isNew } = answer);
      return answer.device;
    });
    return isNew ? device : context.json(device, 200);
  },
});

me.route("DELETE /v1/me/devices/{deviceId}", {
  summary: "Have a device told nothing more",
  access: "me",
  problems: ["acting_entity_required", "not_found"],
  handle: async ({ context, params }) => {
    const { person, self } = await selfIn(context);
    unwrap(await person.removeDevice(self, params.deviceId));
  },
});
