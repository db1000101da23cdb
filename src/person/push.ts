import { createHash } from "node:crypto";
import { encryptNotification, vapidHeaders } from "@block65/webcrypto-web-push";
import type { VapidKeys } from "../auth/vapid.ts";
import { fetchOutgoing, type OutgoingOptions } from "../shared/fetch-outgoing.ts";
import { withTimeout } from "../shared/timeouts.ts";
import { pushAnswerMs } from "./bounds.ts";
import type { DeviceRow } from "./devices.ts";
import type { PushPayload } from "./pushes.ts";

/** The result of a push. `gone`: the subscription has ended. `dropped`: the push service refuses this push. */
export type Pushed =
  | { result: "sent" | "gone" }
  | { result: "dropped"; reason: string }
  | { result: "later"; reason: string; afterMs?: number };

/** Of answers of a push service (RFC 8030). */
export const pushedOf = (status: number, retryAfter: string | null): Pushed => {
  if (status >= 200 && status < 300) return { result: "sent" };
  if (status === 404 || status === 410) return { result: "gone" };
  const reason = `its service answered ${status}`;
  if (status !== 429 && status < 500) return { result: "dropped", reason };
  const seconds = /^\d{1,6}$/.test(retryAfter ?? "") ? Number(retryAfter) : undefined;
  return { result: "later", reason, ...(seconds !== undefined && { afterMs: seconds * 1000 }) };
};

/** The name by which a push service replaces one that it still keeps. It tells nothing of what it is about. */
const topicOf = (payload: PushPayload): [string, string][] => {
  if (payload.type === "cleared") return [];
  const about = payload.kind === "needs_you" ? payload.id : payload.spaceId;
  return [["topic", createHash("sha256").update(about).digest("base64url").slice(0, 32)]];
};

type Target = Pick<DeviceRow, "endpoint" | "keys" | "origin">;

/** Sends it once. It throws nothing: whatever goes wrong is told. The answer's body is not read. */
export const push = async (
  payload: PushPayload,
  { endpoint, keys, origin }: Target,
  { ttlMs, ...with_ }: Pick<OutgoingOptions, "fetch" | "allowLoopback"> & { vapid: VapidKeys; ttlMs: number },
): Promise<Pushed> => {
  const over = new AbortController();
  try {
    // The library signs for https alone, and a subscription on loopback is for development.
    const audience = { endpoint: endpoint.replace(/^http:/, "https:"), keys, expirationTime: null };
    const subject = origin.replace(/^http:/, "https:");
    const { headers } = await vapidHeaders(audience, { ...with_.vapid, subject });
    const body = await encryptNotification(audience, new TextEncoder().encode(JSON.stringify(payload)));
    const isUrgent = payload.type === "notification" && payload.kind === "needs_you";
    const sent = fetchOutgoing(
      {
        method: "POST",
        url: endpoint,
        headers: [
          ...Object.entries(headers),
          ...topicOf(payload),
          ["ttl", String(Math.ceil(ttlMs / 1000))],
          ["urgency", isUrgent ? "high" : "normal"],
          ["content-encoding", "aes128gcm"],
          ["content-type", "application/octet-stream"],
        ],
        body,
      },
      { fetch: with_.fetch, allowLoopback: with_.allowLoopback, signal: over.signal, isDirect: true },
    );
    const told = await withTimeout(pushAnswerMs, sent);
    if (!told.ok) return { result: "later", reason: told.reason };
    const { status, headers: answered } = told.response;
    return pushedOf(status, answered.get("retry-after"));
  } catch (error) {
    return { result: "later", reason: error instanceof Error ? error.message : String(error) };
  } finally {
    over.abort();
  }
};
