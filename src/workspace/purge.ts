import { sql } from "drizzle-orm";
import { type Entity, erasedName } from "../protocol/entity.ts";
import type { ErasureKind } from "../protocol/erasure.ts";
import type { Database } from "../shared/database.ts";
import type { Directory } from "./directory.ts";
import type { Feed } from "./feed.ts";
import type { Outbox } from "./outbox.ts";
import type { Requests } from "./requests.ts";
import {
  audit,
  waitingCalls as callRows,
  signInCodes as codeRows,
  endpoints as endpointRows,
  entities,
  erasures,
  feed as feedRows,
  keys,
  memberships,
  removedSubjects,
  requests as requestRows,
  secrets,
  sessions as sessionRows,
  spaces,
  spacesToBe,
  tokenLeases,
  usage as usageRows,
  workspaces,
} from "./schema.ts";
import type { Sessions } from "./sessions.ts";
import type { SignInCodes } from "./sign-in-codes.ts";
import type { TokenLeases } from "./token-leases.ts";
import type { Usage } from "./usage.ts";
import type { WaitingCalls } from "./waiting-calls.ts";

/** The services that hold something of an entity that is removed or erased. */
type Removing = {
  directory: Directory;
  signInCodes: SignInCodes;
  sessions: Sessions;
  waitingCalls: WaitingCalls;
  feed: Pick<Feed, "add">;
  outbox: Outbox;
  usage: Usage;
  tokenLeases: TokenLeases;
  requests: Requests;
};

type Purging = {
  db: Database;
  directory: Directory;
  requests: Requests;
  self: { forget(): void };
  registered: () => void;
};

/** All of a workspace but its own row, its erasures, and what is to be done. */
const purged = [
  ...[entities, memberships, spaces, spacesToBe, removedSubjects, keys, secrets, codeRows, sessionRows],
  ...[callRows, tokenLeases, requestRows, audit, usageRows, endpointRows, feedRows],
] as const;

/** Nobody of this id is in the workspace any more: what they hold ends, and their spaces are told. In a transaction. */
export const removeEntity = (services: Removing, id: string): Entity => {
  const {
    directory,
    signInCodes,
    sessions,
    waitingCalls,
    outbox,
    usage,
    tokenLeases: leases,
    requests,
    feed,
  } = services;
  const entity = directory.get(id);
  directory.remove(id);
  feed.add(entity.type === "agent" ? "agent.removed" : "entity.removed", id);
  if (entity.role === "admin") outbox.makerEnded(id);
  signInCodes.forgetEntity(id);
  sessions.forgetEntity(id);
  waitingCalls.forgetAgent(id);
  usage.forgetStorage(id);
  leases.keep(id);
  for (const kind of ["agents", "entities", "imports"]) requests.forgetAt(`/${kind}/${id}`);
  return entity;
};

/** Deletes what the workspace's own object holds of something erased. In a transaction. Answers how many rows. */
export const purge = (services: Purging, kind: ErasureKind, id: string): number => {
  const { db, self, requests, registered, directory } = services;
  if (kind === "space") return requests.forgetEntity(id);
  // The row of the directory is gone since the erasure began.
  if (kind !== "workspace") return 1 + requests.forgetEntity(id);
  const rows = purged.reduce((sum, table) => sum + db.delete(table).returning({ one: sql`1` }).all().length, 0);
  db.update(workspaces).set({ name: erasedName, auth: null, auditWebhook: null, reseal: null }).run();
  // All objects have let go by now of what is still being erased.
  db.update(erasures).set({ names: [] }).run();
  self.forget();
  directory.forget();
  registered();
  return rows + 1;
};
