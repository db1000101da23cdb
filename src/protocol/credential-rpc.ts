import type { AuditActor } from "./audit.ts";
import type { Entity } from "./entity.ts";
import type { Auth, Subject } from "./own-users.ts";
import type { Credential, Maker } from "./principal.ts";
import type { Key, KeyScope, NewKey, UpdateKey } from "./workspace.ts";

/** A workspace's methods about keys, tokens, sessions and sign-in links. */
export interface CredentialMethods {
  /**
   * The living key whose hash was presented. Without `scopes`: `full`. A worker of the last release knows none and passes no
   * `knowsScopes`: to it, a key that may not do all is not valid.
   */
  verifyKey(keyHash: string, knowsScopes?: true): { keyId: string; scopes?: KeyScope[]; expiresAt?: number };
  /** Whether the key was issued here, was not revoked, has not expired, and still has these scopes. */
  keyLives(keyId: string, scopes?: KeyScope[]): boolean;
  addKey(input: NewKey): Key;
  /** Those that live, oldest first. */
  keys(): Key[];
  /** `by` as in `NewKey`. */
  updateKey(keyId: string, changes: UpdateKey, by: string): Key;
  /** Makes the successor, of the same name, scopes and end, and ends the key after `overlapMs`. */
  rollKey(keyId: string, successor: NewKey, overlapMs: number): { key: Key; previous: Key };
  revokeKey(keyId: string, by?: AuditActor): null;

  /** Whose JWTs the workspace takes beside its own tokens. */
  putAuth(auth: Auth, by?: AuditActor): Auth;
  deleteAuth(by?: AuditActor): null;
  auth(): Auth | null;
  /** The person whom a verified JWT means, made at first sight where the setting says so; `unauthorized` where it counts no more. */
  entityOfSubject(subject: Subject): { entityId: string; generation: number };
  /**
   * Until when a credential with a valid signature holds at the latest: 0 where it does not, `neverEnds` where nothing ends it.
   * `socketAt`: the id of the object that asks for a socket of its own.
   */
  credentialUntil(credential: Credential, socketAt?: string): number;
  /** Whether `by` may make a token for the entity, and the generation that it is of. `isGuest`: it is a guest agent. */
  admitToken(entityId: string, by: Maker, minter?: AuditActor, isGuest?: boolean): { generation: number };
  /** All tokens, sessions and sign-in links of the entity end, and what it made for others; its sockets close. */
  signOut(entityId: string, by?: AuditActor): null;
  /** Keeps the hash of a person's one-time code. `madeBy`: the admin who made it for another. `issuer`: by whose right. */
  addSignInCode(code: NewSignInCode): { expiresAt: number };
  /** Whom a code would sign in; `unauthorized` where it was used, has run out, or its maker may make none any more. */
  offeredSession(hash: string): OfferedSession;
  /** The same; the code is used by that, and the session begins. */
  useSignInCode(hash: string, session: { id: string; expiresAt: number }): OfferedSession;
  sessionLives(sessionId: string): boolean;
  /** The session's cookie counts no more, and its person's spaces close its sockets. */
  endSession(sessionId: string): null;
}

export type NewSignInCode = { hash: string; entityId: string; madeBy: string | null; issuer: string; by?: Maker };

/** Whom a sign-in link signs in, the admin who made it for another person, and what the session hangs on. */
export type OfferedSession = { entity: Entity; madeBy: string | null } & Partial<
  Pick<Credential, "generation" | "keyId" | "impersonatorGeneration" | "authId">
>;
