import { desc, lt, sql } from "drizzle-orm";
import type { Env } from "../env/env.ts";
import type { Page, PageRequest } from "../protocol/rpc.ts";
import type { RegisteredWorkspace } from "../protocol/workspace.ts";
import { isoTime } from "../shared/clock.ts";
import type { Database } from "../shared/database.ts";
import { unwrap } from "../shared/errors.ts";
import { type Crashable, faultOnceStored } from "../shared/fault.ts";
import { pageOf } from "../shared/page.ts";
import { withTimeout } from "../shared/timeouts.ts";
import type { Jobs } from "../timers/jobs.ts";
import { tellTimeoutMs } from "./bounds.ts";
import { registry, type workspaces } from "./schema.ts";

/** The object that holds the registry: of the workspaces' class, and no workspace. */
export const registryName = "registry";
const kind = "register";

export type WorkspaceRow = typeof workspaces.$inferSelect;

/** A workspace as the operator's list has it. */
export const registeredOf = ({ id, name, createdAt, suspended, deletedAt }: WorkspaceRow): RegisteredWorkspace => ({
  ...{ id, name, createdAt: isoTime(createdAt) },
  ...(suspended && { suspended: { ...suspended, at: isoTime(suspended.at) } }),
  ...(deletedAt !== null && { deletedAt: isoTime(deletedAt) }),
});

/**
 * The deployment's list of workspaces, read by its operator alone. It is written when a workspace is created, renamed,
 * suspended, resumed or deleted. So it is on no hot path.
 */
export const createRegistry = (db: Database) => ({
  register(workspace: RegisteredWorkspace): void {
    const set = { workspace: sql`excluded.workspace` };
    const values = { id: workspace.id, workspace };
    db.insert(registry).values(values).onConflictDoUpdate({ target: registry.id, set }).run();
  },

  page(request: PageRequest): Page<RegisteredWorkspace> {
    const read = ({ from = Number.MAX_SAFE_INTEGER, limit }: { from: number | undefined; limit: number }) => {
      const isNext = lt(registry.position, from);
      return db.select().from(registry).where(isNext).orderBy(desc(registry.position)).limit(limit).all();
    };
    return pageOf(request, read, ({ workspace }) => workspace);
  },
});

/**
 * Has the registry know the workspace as it is now, however often it crashes. Call what is answered in the transaction
 * that changes it.
 */
export const createRegistration = (
  jobs: Jobs,
  env: Pick<Env, "WORKSPACE">,
  current: () => RegisteredWorkspace,
  object: Crashable,
): (() => void) => {
  jobs.handle(kind, {
    atOnce: 1,
    async run() {
      await faultOnceStored("workspace.before-tell", object);
      unwrap(await withTimeout(tellTimeoutMs, env.WORKSPACE.getByName(registryName).register(current())));
      return undefined;
    },
  });
  return () => jobs.set({ kind, key: kind });
};
