import { and, eq, gt, lte } from "drizzle-orm";
import type { Role } from "../protocol/entity.ts";
import type { OfferedSession } from "../protocol/rpc.ts";
import type { Clock } from "../shared/clock.ts";
import { countOf, type Database } from "../shared/database.ts";
import { ColloquyError } from "../shared/errors.ts";
import { maxSignInCodes, signInCodeMs } from "./bounds.ts";
import type { Directory } from "./directory.ts";
import type { Keys } from "./keys.ts";
import { signInCodes } from "./schema.ts";

/**
 * The one-time codes of sign-in links, of which only hashes are here.
 *
 * Invariants
 * 1. A code signs in once: it is deleted by the transaction that answers it.
 * 2. It signs in while who made it could make it still: the key lives, the admin is one.
 * 3. One that is past its time is as if it had never been; it goes when the next is made.
 */
export const createSignInCodes = (
  db: Database,
  clock: Clock,
  directory: Pick<Directory, "get" | "find">,
  keys: Pick<Keys, "signsIn">,
) => {
  const mayMakeIt = (maker: string, role: Role): boolean =>
    maker.startsWith("key_") ? keys.signsIn(maker, role) : directory.find(maker)?.role === "admin";

  /** Throws `forbidden` for a key that may only sign people in: by an admin it would have more than it has. */
  const requireRight = (by: string | null | undefined, role: Role): void => {
    if (!by?.startsWith("key_") || mayMakeIt(by, role)) return;
    throw new ColloquyError("forbidden", "To sign an admin in takes a secret key of scope full, or an admin.");
  };

  /** Whom the code signs in. */
  const offered = (hash: string): OfferedSession => {
    const isLiving = and(eq(signInCodes.hash, hash), gt(signInCodes.expiresAt, clock.now()));
    const row = db.select().from(signInCodes).where(isLiving).get();
    const entity = row && directory.find(row.entityId);
    const makers = [row?.issuer ?? [], row?.madeBy ?? []].flat();
    if (row && entity && makers.every((maker) => mayMakeIt(maker, entity.role))) return { entity, madeBy: row.madeBy };
    const detail =
      "The sign-in code is not valid: it was used, has run out, was never issued, or its maker has no right to it any more. Ask for a new link.";
    throw new ColloquyError("unauthorized", detail);
  };

  return {
    offered,

    admitToken(entityId: string, by: string | undefined): void {
      const entity = directory.find(entityId);
      if (!entity) throw new ColloquyError("unknown_reference", `Not in this workspace: ${entityId}.`);
      if (entity.type === "agent") {
        const detail = "An agent speaks through its runs: tokens are for people and services.";
        throw new ColloquyError("unknown_reference", detail);
      }
      requireRight(by, entity.role);
    },

    add(code: Omit<typeof signInCodes.$inferInsert, "expiresAt">): { expiresAt: number } {
      const { type, name, role } = directory.get(code.entityId);
      requireRight(code.issuer, role);
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
        .values({ ...code, expiresAt })
        .run();
      return { expiresAt };
    },

    use(hash: string): OfferedSession {
      const session = offered(hash);
      db.delete(signInCodes).where(eq(signInCodes.hash, hash)).run();
      return session;
    },

    forgetEntity(entityId: string): void {
      db.delete(signInCodes).where(eq(signInCodes.entityId, entityId)).run();
    },
  };
};
