import type { LimitName, LimitsInUse, SetLimits, WorkspaceLimits, WorkspaceUse } from "../protocol/limits.ts";
import { limitNames } from "../protocol/limits.ts";
import type { Database, Remembered } from "../shared/database.ts";
import { ColloquyError } from "../shared/errors.ts";
import { workspaces } from "./schema.ts";

type Held = { limits: WorkspaceLimits };

/** Throws `limit_reached` where the workspace stores all that the operator allows. */
export const requireStorage = ({ limits }: { limits: WorkspaceLimits }, bytes: number): void => {
  const most = limits.maxStorageBytes;
  if (most === undefined || bytes < most) return;
  const says = `The operator allows this workspace ${most} bytes (maxStorageBytes), and ${bytes} are stored`;
  throw new ColloquyError("limit_reached", `${says}: delete spaces, agents or messages, or ask the operator for more.`);
};

/** Throws `limit_reached` where there is no room for one more. `bound`: the deployment's own. */
export type RequireRoom = (name: LimitName, used: number, bound: number, what: string, remedy: string) => void;

/** The limit that was reached. */
export type Reached = { name: LimitName; most: number; used: number };

/** Throws where the operator's limit leaves no room, which `reached` is told of, else where the deployment's bound does. */
export const roomWithin =
  (limits: () => WorkspaceLimits, reached: (limit: Reached) => void): RequireRoom =>
  (name, used, bound, what, remedy) => {
    const limit = limits()[name];
    if (limit !== undefined && used >= limit && limit < bound) {
      reached({ name, most: limit, used });
      const says = `The operator allows this workspace ${limit} ${what} (${name}), and ${used} are used`;
      throw new ColloquyError("limit_reached", `${says}: ${remedy}, or ask the operator for more.`);
    }
    if (used < bound) return;
    throw new ColloquyError("limit_reached", `A workspace has at most ${bound} ${what} (${name}): ${remedy}.`);
  };

/**
 * L8: what the operator allows a workspace.
 *
 * Invariants
 * 1. What is made counts in the transaction that makes it, and a space from its admission on. So neither concurrent
 *    requests nor a crash exceed a limit.
 * 2. A limit below what is used takes nothing away. It is refused, unless the operator says that it is meant.
 */
export const createLimits = (
  db: Database,
  self: Remembered<Held | undefined>,
  used: { [Name in LimitName]: () => number },
) => {
  const use = (): WorkspaceUse => ({
    maxAgents: used.maxAgents(),
    maxEntities: used.maxEntities(),
    maxSpaces: used.maxSpaces(),
    maxStorageBytes: used.maxStorageBytes(),
    maxTokensPerDay: used.maxTokensPerDay(),
  });

  const inUse = (): LimitsInUse => ({ limits: self.get()?.limits ?? {}, used: use() });

  return {
    inUse,

    set({ force, ...limits }: SetLimits): LimitsInUse {
      const now = use();
      const below = limitNames.filter((name) => (limits[name] ?? Number.POSITIVE_INFINITY) < now[name]);
      if (below.length > 0 && !force) {
        const issues = below.map((name) => ({
          path: name,
          message: `${limits[name]} is below the ${now[name]} in use`,
        }));
        const remedy = "allow at least that, or send force: true, which takes nothing away and refuses what is new";
        const says = issues.map(({ path, message }) => `${path}: ${message}`).join("; ");
        throw new ColloquyError("conflict", `Nothing was set. ${says}: ${remedy}.`, { issues });
      }
      db.update(workspaces).set({ limits }).run();
      self.forget();
      return inUse();
    },
  };
};
