import type { Env } from "../env/env.ts";
import { ColloquyError } from "../shared/errors.ts";
import { log } from "../shared/log.ts";
import { ipv6Groups } from "../shared/outgoing.ts";
import { ExpiringMap } from "./expiring-map.ts";

/**
 * Limits the rate of each caller by Cloudflare's rate limiting bindings (`wrangler.toml`), which count per location and
 * approximately.
 *
 * Invariants
 * 1. No request waits for a count. It runs in the background; where it exceeds the limit, later requests are refused
 *    for the binding's window.
 * 2. A binding that is absent or fails refuses nobody: it protects the deployment, which works without it.
 */

/** The window of every binding in `wrangler.toml`, in seconds: after it a refused caller may ask again. */
export const rateWindowSeconds = 10;

const maxRefused = 20_000;
const networkGroups = 4;

/** The binding of each rate, and what a refusal says. */
const rates = {
  key: { binding: "RATE_KEY", says: "This secret key asks too often" },
  entity: { binding: "RATE_ENTITY", says: "This entity asks too often" },
  hook: { binding: "RATE_HOOK", says: "This address delivers to this hook too often" },
  public: { binding: "RATE_PUBLIC", says: "This address asks too often" },
  stranger: { binding: "RATE_STRANGER", says: "Too many wrong credentials came from this address" },
} as const;
export type Rate = keyof typeof rates;

const refused = new ExpiringMap<true>(rateWindowSeconds * 1000, maxRefused);

/** The bindings of a request, and what keeps its isolate alive for work in the background. */
export type Counting = { env: Env; waitUntil: (work: Promise<unknown>) => void };

const place = (rate: Rate, key: string): string => `${rate} ${key}`;

const count = async (binding: RateLimit, rate: Rate, key: string): Promise<void> => {
  try {
    const { success } = await binding.limit({ key });
    if (!success) refused.set(place(rate, key), true);
  } catch (error) {
    log.error("rate.unknown", error, { rate });
  }
};

/** Throws `rate_limited` where `key` has just been counted too often. */
export const requireRoom = ({ env }: Counting, rate: Rate, key: string): void => {
  if (env.RATE_LIMITS === "off" || !refused.get(place(rate, key))) return;
  const { says, binding } = rates[rate];
  throw new ColloquyError("rate_limited", `${says} (${binding}): try again in ${rateWindowSeconds} s.`);
};

/** Counts one request of `key`; throws `rate_limited` where those before it were too many. */
export const countRequest = (counting: Counting, rate: Rate, key: string): void => {
  requireRoom(counting, rate, key);
  const { env, waitUntil } = counting;
  const binding = env.RATE_LIMITS === "off" ? undefined : env[rates[rate].binding];
  if (binding) waitUntil(count(binding, rate, key));
};

/** The address that a request comes from. Of an IPv6 address only the network counts: whoever has one has all of it. */
export const addressOf = (request: Request): string => {
  const address = request.headers.get("cf-connecting-ip") ?? "unknown";
  if (!address.includes(":")) return address;
  const network = ipv6Groups(address).slice(0, networkGroups);
  return network.map((group) => group.toString(16)).join(":");
};
