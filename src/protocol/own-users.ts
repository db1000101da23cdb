import * as z from "zod";
import { component, strictComponent, Timestamp } from "./text.ts";

/** The most keys that a set holds, and the most bytes of one. */
export const maxJwks = 50;
export const maxJwksBytes = 64 * 1024;

const privateMembers = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];

export const Jwk = z
  .looseObject({ kty: z.enum(["RSA", "EC", "OKP"], "must be RSA, EC or OKP: other keys verify nothing here") })
  .refine((jwk) => !privateMembers.some((member) => member in jwk), {
    error: "holds a private key: publish the public part alone, and replace that key, which others may have read",
  });
export type Jwk = z.infer<typeof Jwk>;

export const JwkSet = z
  .looseObject({ keys: z.array(Jwk).min(1).max(maxJwks) })
  .refine(
    (set) => JSON.stringify(set).length <= maxJwksBytes,
    `must have at most ${maxJwksBytes} bytes (maxJwksBytes)`,
  );

/** What happens to a person who comes with a token and is not in the workspace. */
const FirstSight = z.union([z.strictObject({ role: z.literal("member") }), z.literal("refused")]);

const text = z.string().min(1).max(500);
const fields = {
  jwksUrl: z.string().max(2000).optional(),
  jwks: JwkSet.optional(),
  issuer: text,
  /** If there are several, a token has to name one. */
  audience: z.union([text, z.array(text).min(1).max(10)]),
};

export const PutAuth = strictComponent("PutAuth", { ...fields, firstSight: FirstSight.default("refused") }).refine(
  ({ jwksUrl, jwks }) => (jwksUrl === undefined) !== (jwks === undefined),
  { error: "name one of jwksUrl and jwks, not both", path: ["jwksUrl"] },
);

/** Whose tokens a workspace takes beside its own. `id` changes with the setting: what was let in by another ends. */
export const Auth = component("Auth", { id: z.string(), ...fields, firstSight: FirstSight, changedAt: Timestamp });
export type Auth = z.infer<typeof Auth>;

/** A person as their token tells of them. `issuedAt`: milliseconds; 0 where it does not say. */
export type Subject = {
  authId: string;
  externalId: string;
  name?: string | undefined;
  issuedAt: number;
  newId: string;
};
