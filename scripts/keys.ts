import { createECDH, randomBytes } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { readVariables, writeVariable } from "./secrets.ts";

export type Keys = { adminKey: string };

/**
 * The keys of this machine's house. Writes `path` (readable by its owner only) with random ones if there is none.
 * SIGNING_SECRET is never replaced: every id that was issued depends on it. `npm run rotate` puts newer ones before it.
 * A file of before Web Push gets the keys of it.
 */
export const ensureKeys = (path: string): Keys & { written: boolean } => {
  const written = !existsSync(path);
  if (written) {
    const random = (): string => randomBytes(32).toString("base64url");
    const lines = [`ADMIN_KEY=${random()}`, `SIGNING_SECRET=${random()}`, "ENVIRONMENT=development"];
    writeFileSync(path, `${lines.join("\n")}\n`, { mode: 0o600 });
  }
  const adminKey = variable(path, "ADMIN_KEY");
  if (!readVariables(path).VAPID_KEYS) writeVariable(path, "VAPID_KEYS", newVapidKeys());
  return { adminKey, written };
};

/** New keys of Web Push: the public one, an uncompressed point of P-256, and the private one, both as base64url. */
export const newVapidKeys = (): string => {
  const pair = createECDH("prime256v1");
  pair.generateKeys();
  // Node leaves zeros in front of a private key away.
  const privateKey = Buffer.concat([Buffer.alloc(32), pair.getPrivateKey()]).subarray(-32);
  return [pair.getPublicKey(), privateKey].map((key) => key.toString("base64url")).join(".");
};

const variable = (path: string, name: string): string => {
  const found = new RegExp(`^\\s*${name}\\s*=\\s*(.*?)\\s*$`, "m").exec(readFileSync(path, "utf8"))?.[1];
  const value = found?.replace(/^(["'])(.*)\1$/, "$2");
  if (!value) throw new Error(`${path} has no ${name}: add one, or delete the file and start again to have it written`);
  return value;
};
