import { createECDH, randomBytes } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { decrypt } from "http_ece";
import { importJWK, jwtVerify } from "jose";
import * as z from "zod";

/**
 * Somebody's push service (RFC 8030), beside `remote.ts`. It decrypts by `http_ece` and verifies by `jose`, which share no code with
 * what encrypts and signs. `PUT /push/<name>` makes a subscription, or says how it answers; `GET` tells what came.
 */
const Plan = z.object({
  status: z.int().default(201),
  retryAfter: z.string().optional(),
  location: z.string().optional(),
  how: z.enum(["plain", "huge", "silent"]).default("plain"),
});

const Came = z.object({
  status: z.int(),
  payload: z.looseObject({ type: z.string() }),
  headers: z.record(z.string(), z.string()),
  claims: z.object({ aud: z.string(), sub: z.string(), hours: z.number() }),
  publicKey: z.string(),
});
export const CamePushes = z.array(Came);
export type CamePush = z.infer<typeof Came>;

type Subscription = {
  ecdh: ReturnType<typeof createECDH>;
  auth: Buffer;
  plan: z.infer<typeof Plan>;
  came: CamePush[];
};
const subscriptions = new Map<string, Subscription>();

const newSubscription = (): Subscription => {
  const ecdh = createECDH("prime256v1");
  ecdh.generateKeys();
  return { ecdh, auth: randomBytes(16), plan: Plan.parse({}), came: [] };
};

/** The claims of `authorization: vapid t=…, k=…` (RFC 8292), proven by the key that stands there. */
const verified = async (authorization: string) => {
  const [, token = "", publicKey = ""] = /^vapid t=([^,]+), k=(.+)$/.exec(authorization) ?? [];
  const point = Buffer.from(publicKey, "base64url");
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((part) => part.toString("base64url"));
  const key = await importJWK({ kty: "EC", crv: "P-256", x: x ?? "", y: y ?? "" }, "ES256");
  const { payload } = await jwtVerify(token, key, { algorithms: ["ES256"], currentDate: new Date(0) });
  const { aud, sub = "", exp = 0, iat = 0 } = payload;
  return { publicKey, claims: { aud: String(aud), sub, hours: (exp - iat) / 3600 } };
};

const take = async (subscription: Subscription, body: Buffer, headers: IncomingMessage["headers"]): Promise<void> => {
  const { ecdh, auth, plan, came } = subscription;
  const text = decrypt(body, { version: "aes128gcm", privateKey: ecdh, authSecret: auth.toString("base64url") });
  const { authorization = "", ...rest } = headers;
  const told = Object.fromEntries(Object.entries(rest).map(([name, value]) => [name, String(value)]));
  const { claims, publicKey } = await verified(authorization);
  came.push({ status: plan.status, payload: JSON.parse(text.toString("utf8")), headers: told, claims, publicKey });
};

export const answerPush = async (name: string, request: IncomingMessage, response: ServerResponse): Promise<void> => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  const subscription = subscriptions.get(name) ?? newSubscription();
  const { ecdh, auth, came } = subscription;
  if (request.method === "PUT") {
    subscription.plan = Plan.parse(JSON.parse(body.toString()));
    subscriptions.set(name, subscription);
    const keys = { p256dh: ecdh.getPublicKey().toString("base64url"), auth: auth.toString("base64url") };
    return void response.end(JSON.stringify(keys));
  }
  if (request.method === "GET") return void response.end(JSON.stringify(came));
  const { plan } = subscription;
  try {
    await take(subscription, body, request.headers);
  } catch (error) {
    return void response.writeHead(400).end(String(error));
  }
  if (plan.how === "silent") return;
  response.writeHead(plan.status, {
    ...(plan.retryAfter !== undefined && { "retry-after": plan.retryAfter }),
    ...(plan.location !== undefined && { location: plan.location }),
  });
  response.end(plan.how === "huge" ? Buffer.alloc(10 * 1024 * 1024, "x") : undefined);
};
