import { ColloquyError } from "../shared/errors.ts";

/** Both as base64url: an uncompressed point of P-256, and its private number. */
export type VapidKeys = { publicKey: string; privateKey: string };

/** The deployment's keys of Web Push (RFC 8292), which `npm start` and `npm run deploy` make. Throws `not_configured`. */
export const vapidKeysOf = ({ VAPID_KEYS: text = "" }: { VAPID_KEYS?: string | undefined }): VapidKeys => {
  const [, publicKey, privateKey] = /^([A-Za-z0-9_-]{87})\.([A-Za-z0-9_-]{43})$/.exec(text.trim()) ?? [];
  if (publicKey && privateKey) return { publicKey, privateKey };
  const what = text === "" ? "has no VAPID_KEYS" : "has VAPID_KEYS of another form than <public>.<private>";
  throw new ColloquyError("not_configured", `This deployment ${what}: npm run deploy makes them (docs/operating.md)`);
};
