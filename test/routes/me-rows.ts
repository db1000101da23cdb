import { env } from "cloudflare:workers";
import { vapidKeysOf } from "../../src/auth/vapid.ts";
import { Device } from "../../src/protocol/notifications.ts";
import { call, expectOk } from "../support/house.ts";

/** A browser's subscription, another one each time. */
export const aDevice = () => ({
  endpoint: `https://push.example.com/${crypto.randomUUID()}`,
  keys: { p256dh: vapidKeysOf(env).publicKey, auth: "AAAAAAAAAAAAAAAAAAAAAA" },
});

/** The id of a new device of who bears this, or of the person that a key acts as. */
export const newDevice = async (bearer: string, as?: string): Promise<string> =>
  (await expectOk(Device, call("/v1/me/devices", { bearer, body: aDevice(), ...(as !== undefined && { as }) }))).id;

type Own = [number, number, number, number, number, number, number];
/** For whoever is a person, for themselves. */
const person = (status: number): Own => [422, status, status, 403, status, status, status];

/** The rows of the matrix of settings and devices. Each finds their own devices alone: Mona has one. */
export const meRows: Record<string, { own: Own; elsewhere: number; body?: () => unknown }> = {
  "GET /v1/me/settings": { own: person(200), elsewhere: 200 },
  "PATCH /v1/me/settings": { own: person(200), elsewhere: 200, body: () => ({ quietHours: null }) },
  "GET /v1/me/devices": { own: person(200), elsewhere: 200 },
  "POST /v1/me/devices": { own: person(201), elsewhere: 201, body: aDevice },
  "DELETE /v1/me/devices/{deviceId}": { own: [422, 204, 404, 403, 404, 204, 404], elsewhere: 404 },
  "GET /v1/push-key": { own: [200, 200, 200, 200, 200, 200, 200], elsewhere: 200 },
};
