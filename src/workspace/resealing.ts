import { isSealedAnew, resealed } from "../auth/sealing.ts";
import type { Env } from "../env/env.ts";
import type { Reseal } from "../protocol/workspace.ts";
import { type Clock, isoTime } from "../shared/clock.ts";
import type { Database } from "../shared/database.ts";
import { unwrap } from "../shared/errors.ts";
import { type Crashable, faultOnceStored } from "../shared/fault.ts";
import { ringOf } from "../shared/secret-ring.ts";
import { withTimeout } from "../shared/timeouts.ts";
import type { Jobs } from "../timers/jobs.ts";
import type { Audit } from "./audit.ts";
import { maxTellsAtOnce, maxUnopened, resealAgainMs, tellTimeoutMs } from "./bounds.ts";
import type { Directory } from "./directory.ts";
import type { Endpoints } from "./endpoints.ts";
import { askImported } from "./outbox.ts";
import type { Requests } from "./requests.ts";
import { workspaces } from "./schema.ts";
import type { Secrets } from "./secrets.ts";

const kind = "reseal";
/** The job of the workspace's own rows. Those of agents have their ids as keys. */
const own = "workspace";

type Surroundings = {
  env: Env;
  db: Database;
  clock: Clock;
  jobs: Jobs;
  audit: Audit;
  directory: Directory;
  secrets: Secrets;
  requests: Requests;
  endpoints: Endpoints;
  self: { get(): typeof workspaces.$inferSelect | undefined; forget(): void };
  /** Crashes it in tests. */
  object: Crashable;
};

/**
 * Reseals a workspace by the ring's first secret: its secrets, those of its endpoints, the answers that it keeps, its
 * agents' copies of the secrets and their hooks. A test compares this with the code.
 *
 * Invariants
 * 1. What is still to be visited has a job: whatever is cut goes on. A visit of what is sealed anew changes nothing.
 * 2. What was written meanwhile is not overwritten.
 * 3. Agents are visited after the workspace's own rows, so that the copies that they get are sealed anew.
 */
export const createResealing = (surroundings: Surroundings) => {
  const { env, db, clock, jobs, audit, directory, secrets, requests, endpoints, self, object } = surroundings;
  const stateOf = () => {
    const row = self.get();
    return row?.reseal?.print === ringOf(env).first.print ? row.reseal : undefined;
  };

  /** It is opened by no secret of the ring: whoever knows it has to write it again. */
  const cannotOpen = (what: string): void => {
    const state = stateOf();
    if (!state || state.unopened.includes(what) || state.unopened.length >= maxUnopened) return;
    db.update(workspaces)
      .set({ reseal: { ...state, unopened: [...state.unopened, what] } })
      .run();
    self.forget();
  };

  const visitOwn = async (workspaceId: string): Promise<void> => {
    for (const { name, sealed } of secrets.rows()) {
      const fresh = await resealed(env, workspaceId, name, sealed).catch(() => undefined);
      if (fresh === undefined) cannotOpen(`secret ${name}`);
      else secrets.replace(name, sealed, fresh);
    }
    for (const id of endpoints.oldlySealed()) await endpoints.reseal(id).catch(() => cannotOpen(`endpoint ${id}`));
    for (const { principal, key, body } of requests.sealed()) {
      // An answer that cannot be opened is given to nobody, and is forgotten within a day.
      const fresh = await resealed(env, workspaceId, key, body).catch(() => body);
      requests.replace({ principal, key }, body, fresh);
    }
    await faultOnceStored("workspace.before-tell", object);
    for (const key of directory.agentIds()) jobs.set({ kind, key });
  };

  const visitAgent = async (workspaceId: string, agentId: string): Promise<number | undefined> => {
    const agent = env.AGENT.getByName(agentId);
    const asked = askImported(agent, () => agent.reseal(workspaceId, secrets.sealed()));
    const answer = await withTimeout(tellTimeoutMs, asked);
    await faultOnceStored("workspace.after-tell", object);
    // It has been deleted meanwhile.
    if (!answer.ok && answer.problem.code === "not_found") return undefined;
    const { unopened, waiting } = unwrap(answer);
    for (const hookId of unopened) cannotOpen(`hook ${hookId}`);
    return waiting > 0 ? clock.now() + resealAgainMs : undefined;
  };

  jobs.handle(kind, {
    atOnce: maxTellsAtOnce,
    async run({ key }) {
      const workspaceId = self.get()?.id ?? "";
      if (key !== own) return visitAgent(workspaceId, key);
      await visitOwn(workspaceId);
      return undefined;
    },
  });

  const describe = (): Reseal => {
    const { first, secrets: ring } = ringOf(env);
    const state = stateOf();
    const left = jobs.keys(kind);
    const isOld = ({ sealed }: { sealed: string }): boolean => !isSealedAnew(env, sealed);
    const hanging = {
      secrets: [...secrets.rows().flatMap((row) => (isOld(row) ? row.name : [])), ...endpoints.oldlySealed()],
      answers: requests.sealed().filter(({ body }) => isOld({ sealed: body })).length,
      agents: left.filter((key) => key !== own).length,
    };
    const isLeft = hanging.secrets.length > 0 || hanging.answers > 0 || (state?.unopened.length ?? 0) > 0;
    return {
      signing: { name: first.name, print: first.print },
      ring: ring.map(({ name, print }) => ({ name, print })),
      state: left.length > 0 ? "running" : state && !isLeft ? "done" : "needed",
      startedAt: state ? isoTime(state.startedAt) : null,
      agents: state?.agents ?? 0,
      hanging,
      unopened: state?.unopened ?? [],
    };
  };

  return {
    describe,

    /** Visits all of it once more, unless that is under way. */
    begin(): Reseal {
      if (jobs.keys(kind).length > 0 && stateOf()) return describe();
      const { print } = ringOf(env).first;
      const reseal = { print, startedAt: clock.now(), agents: directory.agentIds().length, unopened: [] };
      db.update(workspaces).set({ reseal }).run();
      self.forget();
      jobs.set({ kind, key: own });
      audit.note({ action: "secrets.resealed", actor: { id: "operator" }, target: print });
      return describe();
    },
  };
};
