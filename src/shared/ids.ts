import { createHmac, hkdfSync } from "node:crypto";
import { ulid } from "ulid";

/**
 * Self-checking ids: `prefix_` + ULID + 8 characters of an HMAC over both, so that the worker refuses an
 * invented id without waking (and so creating) an object. An owned id carries its owner's ULID in front.
 *
 * Invariants
 * 1. An id that `isIssued` accepts was made with this deployment's secret for ids, which never changes (`secret-ring.ts`).
 * 2. `derive…` gives the same id for the same owner and parts, for ever: what a replay makes is found again.
 */
const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/** The first `length` characters, of 5 bits each. */
const base32 = (bytes: Uint8Array, length: number): string => {
  let bits = 0;
  let held = 0;
  let text = "";
  for (const byte of bytes.subarray(0, Math.ceil((length * 5) / 8))) {
    held = (held << 8) | byte;
    bits += 8;
    while (bits >= 5 && text.length < length) {
      bits -= 5;
      text += alphabet[(held >> bits) & 31];
    }
    held &= (1 << bits) - 1;
  }
  return text;
};

/** For each kind of thing that lives inside another, the prefix of that owner. */
const ownerPrefix = {
  msg: "spc",
  run: "ent",
  tc: "ent",
  pln: "ent",
  hook: "ent",
  evt: "ent",
  arch: "ent",
} as const;
type OwnedPrefix = keyof typeof ownerPrefix;
type OwnPrefix = "wsp" | "ent" | "spc" | "key" | "str" | "ep" | "dev";

export type Ids = {
  /** A new id of something that stands alone. */
  mint(prefix: OwnPrefix): string;
  /** A new id of something that lives inside `ownerId`. */
  mintOwned(prefix: OwnedPrefix, ownerId: string): string;
  /** The id that always follows from these parts. */
  derive(prefix: OwnPrefix, ...parts: (string | number)[]): string;
  /** The id of something inside `ownerId` that always follows from these parts. */
  deriveOwned(prefix: OwnedPrefix, ownerId: string, ...parts: (string | number)[]): string;
  /** The id of what stands for `id` inside `ownerId`: it keeps its own part, which is as unique, and so costs one HMAC. */
  deriveFrom(prefix: OwnedPrefix, ownerId: string, id: string): string;
  /** The object that holds what an agent has from a confidential space. Its id shows that it is one. */
  compartment(agentId: string, spaceId: string): string;
  /** Whether an id that was issued here is a compartment's: nobody outside names one. */
  isCompartment(id: string): boolean;
  /** Whether `id` has this prefix and was issued here. */
  isIssued(prefix: OwnPrefix | OwnedPrefix, id: string): boolean;
  /** The full id of the space or agent that an owned id lives in. */
  ownerOf(prefix: OwnedPrefix, id: string): string;
};

/** The part of an id that is its own, and of what stands for it. */
export const ownPart = (id: string): string => id.slice(-34, -8);

/** Whether an owned id, such as a call's, lives in this owner. Both were issued here. */
export const isOwnedBy = (id: string, ownerId: string): boolean =>
  id.slice(id.indexOf("_") + 1).slice(0, 26) === ownerId.slice(ownerId.indexOf("_") + 1).slice(0, 26);

/** The object that holds what an agent has from a confidential space: the agent's compartment for it. */
export const compartmentId = (ids: Pick<Ids, "compartment">, agentId: string, spaceId: string): string =>
  ids.compartment(agentId, spaceId);

/** Ids remembered to be issued here; all are forgotten when there are more. */
const maxKnownIds = 10_000;

/** The key for one purpose, drawn from one of the deployment's secrets. */
export const deriveKey = (secret: string, purpose: string, bytes = 32): Uint8Array =>
  new Uint8Array(hkdfSync("sha256", secret, "colloquy", purpose, bytes));

export const createIds = (secret: string, newUlid: () => string = ulid): Ids => {
  const key = deriveKey(secret, "ids");
  const known = new Set<string>();
  const digest = (text: string): Uint8Array => createHmac("sha256", key).update(text).digest();
  const seal = (body: string): string => body + base32(digest(body), 8);
  const bodyOf = (ownerId: string): string => ownerId.slice(ownerId.indexOf("_") + 1).slice(0, 26);
  const hashed = (parts: (string | number)[]): string => base32(digest(JSON.stringify(parts)), 26);
  /** A compartment's own part ends in a mark of what it begins with. */
  const marked = (own: string): string => own + base32(digest(`compartment ${own}`), 8);
  return {
    mint: (prefix) => seal(`${prefix}_${newUlid()}`),
    mintOwned: (prefix, ownerId) => seal(`${prefix}_${bodyOf(ownerId)}${newUlid()}`),
    derive: (prefix, ...parts) => seal(`${prefix}_${hashed([prefix, ...parts])}`),
    deriveOwned: (prefix, ownerId, ...parts) =>
      seal(`${prefix}_${bodyOf(ownerId)}${hashed([prefix, ownerId, ...parts])}`),
    deriveFrom: (prefix, ownerId, id) => seal(`${prefix}_${bodyOf(ownerId)}${ownPart(id)}`),
    compartment: (agentId, spaceId) => seal(`ent_${marked(hashed(["compartment", agentId, spaceId]).slice(0, 18))}`),
    isCompartment: (id) => marked(bodyOf(id).slice(0, 18)) === bodyOf(id),
    isIssued(prefix, id) {
      if (known.has(id)) return id.startsWith(`${prefix}_`);
      const length = prefix.length + (prefix in ownerPrefix ? 61 : 35);
      if (id.length !== length || !id.startsWith(`${prefix}_`) || seal(id.slice(0, -8)) !== id) return false;
      if (known.size >= maxKnownIds) known.clear();
      known.add(id);
      return true;
    },
    ownerOf: (prefix, id) => seal(`${ownerPrefix[prefix]}_${id.slice(prefix.length + 1, prefix.length + 27)}`),
  };
};
