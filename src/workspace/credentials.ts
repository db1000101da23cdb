import type { Entity } from "../protocol/entity.ts";
import type { Auth, Subject } from "../protocol/own-users.ts";
import { type Credential, type Maker, neverEnds } from "../protocol/principal.ts";
import type { Clock } from "../shared/clock.ts";
import { ColloquyError, suspendedError } from "../shared/errors.ts";
import type { Directory } from "./directory.ts";
import type { Keys } from "./keys.ts";
import type { Sessions } from "./sessions.ts";

const refused = (detail: string): ColloquyError => new ColloquyError("unauthorized", detail);

export type Credentials = ReturnType<typeof createCredentials>;

/**
 * Conditions of tokens and sessions that no signature shows (L7): their entity's generation, the key or admin that made
 * them, the session's row.
 */
export const createCredentials = (
  clock: Clock,
  directory: Pick<Directory, "find" | "generationOf" | "personCalled" | "wasRemoved" | "create">,
  keys: Pick<Keys, "signsInUntil" | "noteSignIn">,
  sessions: Pick<Sessions, "lives">,
  authOf: () => Auth | null,
) => {
  /** Whether the setting of the workspace's own users is this one still. */
  const takes = (authId: string): boolean => authOf()?.id === authId;

  /** Until when it holds at the latest; 0 where it does not. */
  const until = (credential: Credential): number => {
    const { entityId, generation = 0, keyId, sessionId, impersonatedBy, impersonatorGeneration = 0 } = credential;
    if (credential.authId !== undefined && !takes(credential.authId)) return 0;
    const entity = directory.find(entityId);
    if (!entity || directory.generationOf(entityId) !== generation) return 0;
    if (sessionId !== undefined && !sessions.lives(sessionId)) return 0;
    if (impersonatedBy !== undefined) {
      const isAdmin = directory.find(impersonatedBy)?.role === "admin";
      if (!isAdmin || directory.generationOf(impersonatedBy) !== impersonatorGeneration) return 0;
    }
    return keyId === undefined ? neverEnds : keys.signsInUntil(keyId, entity.role);
  };

  return {
    takes,
    until,

    /** The person whom a JWT means that was verified by the setting. Nobody is made while the workspace is suspended. */
    entityOf(
      { authId, externalId, name = "Guest", issuedAt, newId }: Subject,
      isSuspended = false,
    ): { entityId: string; generation: number } {
      const auth = authOf();
      if (auth?.id !== authId) throw refused("The workspace's own users are set otherwise by now: try again.");
      const person = directory.personCalled(externalId);
      if (person) {
        if (issuedAt >= (person.signedOutAt ?? 0)) return { entityId: person.id, generation: person.generation };
        const lacks = issuedAt === 0 ? ", one that says by iat when it was issued" : "";
        throw refused(
          `Its person has signed out everywhere since it was issued: get a new one from your issuer${lacks}.`,
        );
      }
      const made = "create the person by POST /v1/entities with the JWT's sub as externalId";
      if (auth.firstSight === "refused") throw refused(`The JWT's person is not in this workspace: ${made}.`);
      if (directory.wasRemoved(externalId)) throw refused(`The JWT's person was removed from this workspace: ${made}.`);
      if (isSuspended) throw suspendedError();
      const { role } = auth.firstSight;
      const { id } = directory.create(newId, { type: "human", name, role, externalId });
      return { entityId: id, generation: 0 };
    },

    /** Lets `by` make a token or a link for the entity, or throws: it may have ended where the caller was let in. */
    admit({ id, role }: Entity, by: Maker): { generation: number } {
      if ("entityId" in by && until(by) <= clock.now()) {
        throw new ColloquyError("unauthorized", "What you ask with has ended: sign in again, or get a new token.");
      }
      if (by.keyId !== undefined) {
        if (keys.signsInUntil(by.keyId, role) === 0) {
          throw new ColloquyError("forbidden", "To sign an admin in takes a secret key of scope full, or an admin.");
        }
        keys.noteSignIn(by.keyId);
      }
      return { generation: directory.generationOf(id) ?? 0 };
    },
  };
};
