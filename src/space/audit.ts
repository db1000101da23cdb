import * as z from "zod";
import type { Env } from "../env/env.ts";
import { type AuditAction, AuditNote, actorOf, hourly } from "../protocol/audit.ts";
import type { Principal } from "../protocol/principal.ts";
import { hostOf, type SecretUse } from "../protocol/secret.ts";
import { type Clock, dayMs } from "../shared/clock.ts";
import { errorKind, unwrap } from "../shared/errors.ts";
import { withTimeout } from "../shared/timeouts.ts";
import type { Jobs } from "../timers/jobs.ts";
import { deliverTimeoutMs } from "./bounds.ts";
import type { Members } from "./members.ts";
import type { Settings } from "./settings.ts";

const kind = "audit";
const notesAtOnce = 2;

const Told = z.object({ workspaceId: z.string(), note: AuditNote });

type Surroundings = {
  env: Pick<Env, "WORKSPACE">;
  jobs: Jobs;
  clock: Clock;
  settings: Settings;
  members: Members;
};

/**
 * Notes of this space for its workspace's audit log.
 *
 * Invariants
 * 1. A note is a job, set in the transaction of what it notes: there `note` is called. It outlives the space.
 * 2. Its name is told too, by which the workspace takes it once.
 */
export const createAudit = ({ env, jobs, clock, settings, members }: Surroundings) => {
  /** Under what each admin's last read was noted. Another instance notes it again, and the workspace knows. */
  const reads = new Map<string, string>();

  jobs.handle(kind, {
    atOnce: notesAtOnce,
    async run({ payload }) {
      const { workspaceId, note } = Told.parse(payload);
      const noted = await withTimeout(deliverTimeoutMs, env.WORKSPACE.getByName(workspaceId).noteAudit(note));
      if (!noted.ok && errorKind(noted.problem.code).retryable) unwrap(noted);
      return undefined;
    },
  });

  const tell = (note: AuditNote & { once: string }, dueAt = clock.now()): void => {
    const workspaceId = settings.find()?.workspaceId ?? "";
    jobs.set({ kind, key: note.once, dueAt, payload: { workspaceId, note: { at: clock.now(), ...note } } });
  };

  return {
    /** Each act, target and actor is noted once. `time`: tells an act from the same one before, and is shown to nobody. */
    note(
      action: AuditAction,
      principal: Principal,
      target: string,
      detail: NonNullable<AuditNote["detail"]> = {},
      ...time: number[]
    ): void {
      const actor = actorOf(principal);
      tell({ action, actor, target, once: [action, target, actor.as ?? actor.id, ...time].join(" "), detail });
    },

    /**
     * The router sends a secret there, as somebody speaks: noted once an hour. A confidential space's day is noted, and
     * told once it is over, as log places and webhooks tell times too. Only its members see the host (C19).
     */
    noteSecretUsed(name: string, { url }: Pick<SecretUse, "url">): void {
      const { id = "", confidentialFrom = null } = settings.find() ?? {};
      const isOpen = confidentialFrom === null;
      const at = isOpen ? clock.now() : Math.floor(clock.now() / dayMs) * dayMs;
      const host = hostOf(url);
      const once = hourly(at, "secret.used", name, id, ...(isOpen ? [host] : []));
      const detail = { ...(isOpen && { host }), kind: "router" };
      tell({ action: "secret.used", actor: { id }, target: name, at, once, detail }, isOpen ? at : at + dayMs);
    },

    /** An admin reads what is said here and is not in the space: noted once in an hour. */
    noteRead(principal: Principal): void {
      const id = settings.find()?.id;
      if (principal.kind === "key" || id === undefined || members.find(principal.entityId)) return;
      const actor = actorOf(principal);
      const once = hourly(clock.now(), "space.read", id, actor.id);
      if (reads.get(actor.id) === once) return;
      reads.set(actor.id, once);
      tell({ action: "space.read", actor, target: id, once });
    },
  };
};
