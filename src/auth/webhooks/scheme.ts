import { createHmac } from "node:crypto";
import { ColloquyError } from "../../shared/errors.ts";
import { sameText } from "../credentials.ts";

/** A delivery as it came, not yet verified. The body is exactly the signed bytes. */
export type WebhookDelivery = { headers: Headers; body: Uint8Array };

/** Which headers a hook reads, where its scheme leaves that open. */
export type HookHeaders = {
  header?: string | undefined;
  idHeader?: string | undefined;
  eventHeader?: string | undefined;
};

/** The sender's name for a delivery, the same each time it is sent; the hash of its body where it has none. */
export type DeliveryName = { id: string } | { bodyHash: string };

/**
 * One kind of sender: how it signs and names a delivery. Another kind needs its name in `HookScheme` and its scheme in
 * `schemes.ts`.
 */
export type WebhookScheme = {
  /** Random bytes, written as a secret that its senders take. */
  writeSecret(bytes: Uint8Array): string;
  /** Why the caller's own secret does not fit the scheme; undefined where it fits. */
  secretFault(secret: string): string | undefined;
  /**
   * Throws `unauthorized` unless one of `secrets` vouches for the delivery. Throws `delivery_expired` where its time is
   * too far from `now` (milliseconds since the epoch), `invalid_request` where it has no name.
   */
  verify(delivery: WebhookDelivery, secrets: readonly string[], headers: HookHeaders, now: number): DeliveryName;
  /** The type of what happened, where the sender says one. */
  eventType(headers: Headers, payload: unknown, hook: HookHeaders): string | undefined;
  /** Whether an event is about the hook itself, such as a first greeting: no agent is told of it. */
  isGreeting(eventType: string | undefined): boolean;
};

const maxNameCharacters = 256;

export const unproven = (how: string): ColloquyError =>
  new ColloquyError("unauthorized", `Nothing proves who sent this: ${how}.`);

/** HMAC-SHA256 over the parts, one after the other. */
export const hmac = (key: string | Uint8Array, parts: (string | Uint8Array)[], as: "hex" | "base64"): string => {
  const signature = createHmac("sha256", key);
  for (const part of parts) signature.update(part);
  return signature.digest(as);
};

/** Whether any presented signature is one of the expected; looks at all of them. */
export const anySame = (presented: readonly string[], expected: readonly string[]): boolean =>
  presented.flatMap((one) => expected.map((other) => sameText(one, other))).includes(true);

/** The delivery's own id in `header`. */
export const nameIn = (headers: Headers, header: string): DeliveryName => {
  const id = headers.get(header)?.trim() ?? "";
  if (id !== "" && id.length <= maxNameCharacters) return { id };
  throw new ColloquyError(
    "invalid_request",
    `In the headers: ${header} must hold the delivery's id, of 1–${maxNameCharacters} characters.`,
    { issues: [{ path: header, message: "must hold the delivery's id" }] },
  );
};

/** A text field of a payload. */
export const textField = (payload: unknown, field: string): string | undefined => {
  if (typeof payload !== "object" || payload === null) return undefined;
  const value: unknown = Object.getOwnPropertyDescriptor(payload, field)?.value;
  return typeof value === "string" && value !== "" ? value : undefined;
};
