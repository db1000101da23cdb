import { ColloquyError } from "./errors.ts";
import { deriveKey } from "./ids.ts";

/**
 * The deployment's secrets: `SIGNING_SECRETS` (`name:secret,name:secret`), then `SIGNING_SECRET`.
 *
 * Invariants
 * 1. The first signs and seals. Each of them verifies and opens.
 * 2. Ids are made and checked with one secret for ever: the one named `ids`, which does nothing else, or else the last.
 * 3. A secret is told apart by its print, which follows from it alone: whoever renames or moves one changes nothing.
 */
export type RingEnv = { SIGNING_SECRET?: string | undefined; SIGNING_SECRETS?: string | undefined };

/** `print`: 12 characters that are the same for the same secret and tell nothing of it. */
export type NamedSecret = { name: string; secret: string; print: string };

export type Ring = { first: NamedSecret; secrets: NamedSecret[]; ids: NamedSecret };

export const minSecretCharacters = 32;
/** The variable with one secret: the oldest of the ring. In an entry, it stands for its value. */
const oldest = "SIGNING_SECRET";
const idsName = "ids";
const name = /^[A-Za-z0-9_-]{1,32}$/;

const refused = (what: string): ColloquyError =>
  new ColloquyError("internal", `${what} (npx wrangler secret put …, or .dev.vars locally; docs/operating.md)`);

export const printOf = (secret: string): string =>
  Buffer.from(deriveKey(secret, "secret-print", 9)).toString("base64url");

const named = (name: string, secret: string): NamedSecret => {
  if (secret.length >= minSecretCharacters) return { name, secret, print: printOf(secret) };
  const what = name === oldest ? oldest : `The secret ${JSON.stringify(name)} in SIGNING_SECRETS`;
  throw refused(`${what} is too short: set it to at least ${minSecretCharacters} random characters`);
};

const entryOf = (text: string, index: number, one: string | undefined): NamedSecret => {
  const [, label = "", secret = ""] = /^([^:]*):(.*)$/s.exec(text) ?? [];
  // Without its name, what stands there may be a secret: it is not repeated.
  if (!name.test(label)) {
    throw refused(`Entry ${index + 1} of SIGNING_SECRETS must be name:secret, its name of letters, digits, - and _`);
  }
  if (secret !== oldest) return named(label, secret);
  if (one) return named(label, one);
  throw refused(`The secret ${JSON.stringify(label)} in SIGNING_SECRETS names SIGNING_SECRET, which is not set`);
};

/** The ring of these variables. Throws `internal`, which says what to set. It never repeats a secret. */
export const parseRing = ({ SIGNING_SECRET: one, SIGNING_SECRETS: all = "" }: RingEnv): Ring => {
  const texts = all.split(",").map((text) => text.trim());
  const entries = texts.filter((text) => text !== "").map((text, index) => entryOf(text, index, one));
  if (one && !entries.some(({ secret }) => secret === one)) entries.push(named(oldest, one));
  const twice = entries.find((entry, index) =>
    entries.slice(0, index).some((other) => other.name === entry.name || other.secret === entry.secret),
  );
  if (twice) throw refused(`SIGNING_SECRETS holds the name or the secret of ${JSON.stringify(twice.name)} twice`);
  const secrets = entries.filter((entry) => entry.name !== idsName);
  const [first] = secrets;
  const ids = entries.find((entry) => entry.name === idsName) ?? secrets.at(-1);
  if (first && ids) return { first, secrets, ids };
  throw refused(`SIGNING_SECRET is not set: set it to at least ${minSecretCharacters} random characters`);
};

let parsed: { one: string | undefined; all: string | undefined; ring: Ring } | undefined;

/** The ring, which is parsed once. */
export const ringOf = ({ SIGNING_SECRET: one, SIGNING_SECRETS: all }: RingEnv): Ring => {
  if (!parsed || parsed.one !== one || parsed.all !== all) {
    parsed = { one, all, ring: parseRing({ SIGNING_SECRET: one, SIGNING_SECRETS: all }) };
  }
  return parsed.ring;
};

/** The result of `open` with the first secret with which it does not throw. Throws its last error if it always does. */
export const openedByAny = async <T>(secrets: NamedSecret[], open: (secret: string) => Promise<T>): Promise<T> => {
  let failure: unknown = new Error("the secret that it was made with is not in the ring");
  for (const { secret } of secrets) {
    try {
      return await open(secret);
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
};
