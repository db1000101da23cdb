import { and, eq, gt, lte, or } from "drizzle-orm";
import type { NewSignInCode, OfferedSession } from "../protocol/credential-rpc.ts";
import type { Role } from "../protocol/entity.ts";
import type { Clock } from "../shared/clock.ts";
import { countOf, type Database } from "../shared/database.ts";
import { ColloquyError } from "../shared/errors.ts";
import { maxSignInCodes, signInCodeMs } from "./bounds.ts";
import type { Credentials } from "./credentials.ts";
import type { Directory } from "./directory.ts";
import type { Keys } from "./keys.ts";
import { signInCodes } from "./schema.ts";

/**
 * The one-time codes of sign-in links, of which only hashes are here.
 *
 * Invariants
 * 1. A code signs in once: it is deleted by the transaction that answers it.
 * 2. It signs in only while its maker could still make it: the key lives, the admin is one, the maker's JWTs are taken.
 * 3. One that is past its time is as if it had never been; it goes when the next is made.
 */
export const createSignInCodes = (
  db: Database,
  clock: Clock,
  directory: Pick<Directory, "get" | "find" | "generationOf">,
  keys: Pick<Keys, "signsInUntil">,
  credentials: Pick<Credentials, "admit" | "takes">,
) => {
  const mayMakeIt = (maker: string, role: Role): boolean =>
    maker.startsWith("key_") ? keys.signsInUntil(maker, role) > 0 : directory.find(maker)?.role === "admin";

  /** Whom the code signs in. */
  const offered = (hash: string): OfferedSession => {
    const isLiving = and(eq(signInCodes.hash, hash), gt(signInCodes.expiresAt, clock.now()));
    const row = db.select().from(signInCodes).where(isLiving).get();
    const entity = row && directory.find(row.entityId);
    const makers = [row?.issuer ?? [], row?.madeBy ?? [], row?.keyId ?? []].flat();
    const isTaken = row?.authId == null || credentials.takes(row.authId);
    if (row && entity && isTaken && makers.every((maker) => mayMakeIt(maker, entity.role))) {
      const { madeBy, keyId, authId } = row;
      const impersonatorGeneration = madeBy === null ? undefined : directory.generationOf(madeBy);
      return {
        ...{ entity, madeBy, generation: directory.generationOf(entity.id) ?? 0 },
        ...(keyId !== null && { keyId }),
        ...(authId !== null && { authId }),
        ...(impersonatorGeneration !== undefined && { impersonatorGeneration }),
      };
    }
    const detail =
      "The sign-in code is not valid: it was used, has run out, was never issued, or its maker has no right to it any more. Ask for a new link.";
    throw new ColloquyError("unauthorized", detail);
  };

  return {
    offered,

    add({ by, ...code }: NewSignInCode): { expiresAt: number } {
      const entity = directory.get(code.entityId);
      const { type, name } = entity;
      if (by) credentials.admit(entity, by);
      if (type !== "human") {
        throw new ColloquyError("conflict", `${JSON.stringify(name)} is no person: only people sign in to the page.`);
      }
      db.delete(signInCodes).where(lte(signInCodes.expiresAt, clock.now())).run();
      if (countOf(db, signInCodes) >= maxSignInCodes) {
        const detail = `A workspace has at most ${maxSignInCodes} unused sign-in links (maxSignInCodes): use those, or wait ten minutes.`;
        throw new ColloquyError("limit_reached", detail);
      }
      const expiresAt = clock.now() + signInCodeMs;
      db.insert(signInCodes)
        .values({ ...code, keyId: by?.keyId ?? null, authId: (by && "authId" in by && by.authId) || null, expiresAt })
        .run();
      return { expiresAt };
    },

    use(hash: string): OfferedSession {
      const session = offered(hash);
      db.delete(signInCodes).where(eq(signInCodes.hash, hash)).run();
      return session;
    },

    /** Those for the entity, and those that it made. */
    forgetEntity(entityId: string): void {
      const { entityId: person, madeBy, issuer } = signInCodes;
      db.delete(signInCodes)
        .where(or(eq(person, entityId), eq(madeBy, entityId), eq(issuer, entityId)))
        .run();
    },
  };
};
export type SignInCodes = ReturnType<typeof createSignInCodes>;
