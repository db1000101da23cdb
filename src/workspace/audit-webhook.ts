import { boundsOf, unseal } from "../auth/sealing.ts";
import { signStandard, standard } from "../auth/webhooks/standard.ts";
import type { Env } from "../env/env.ts";
import type { AuditEntry } from "../protocol/audit.ts";
import { hostOf } from "../protocol/secret.ts";
import type { Clock } from "../shared/clock.ts";
import type { Database, Remembered } from "../shared/database.ts";
import { ColloquyError } from "../shared/errors.ts";
import { type Crashable, faultOnceStored } from "../shared/fault.ts";
import { fetchOutgoing } from "../shared/fetch-outgoing.ts";
import type { Jobs } from "../timers/jobs.ts";
import type { Audit } from "./audit.ts";
import { auditAnswerMs, suspendedLookMs } from "./bounds.ts";
import type { WorkspaceRow } from "./registry.ts";
import { workspaces } from "./schema.ts";
import type { Secrets } from "./secrets.ts";

/**
 * Tells a server of the workspace each entry of its audit log, signed as Standard Webhooks.
 *
 * Invariants
 * 1. Entries go one by one, in order. The place of the last one is stored after its server's 2xx. After a crash before
 *    that it is told again, under the same `webhook-id`.
 * 2. While the server refuses, the job is tried again, later each time, and what is noted meanwhile waits in the log.
 * 3. It rests while the workspace is suspended.
 */
const kind = "audit-webhook";

type Around = {
  env: Env;
  db: Database;
  clock: Clock;
  jobs: Jobs;
  self: Remembered<WorkspaceRow | undefined>;
  audit: Audit;
  secrets: Pick<Secrets, "sealed">;
  object: Crashable;
};

const refused = (why: string): ColloquyError => new ColloquyError("unavailable", `The audit log's webhook ${why}`);

export const createAuditWebhook = ({ env, db, clock, jobs, self, audit, secrets, object }: Around) => {
  /** The key that signs, where the secret may be used so. */
  const keyOf = async (workspaceId: string, { url, secret }: { url: string; secret: string }): Promise<string> => {
    const sealed = secrets.sealed()[secret];
    if (sealed === undefined)
      throw refused(`has no secret ${secret}: write it with PUT /v1/workspace/secrets/${secret}`);
    const { hosts, agents } = boundsOf(sealed);
    if (agents || (hosts && !hosts.includes(hostOf(url)))) throw refused(`may not use the secret ${secret}`);
    const key = await unseal(env, workspaceId, secret, sealed);
    const fault = standard.secretFault(key);
    if (fault !== undefined) throw refused(`cannot sign with the secret ${secret}, which ${fault}`);
    return key;
  };

  const tell = async (
    row: WorkspaceRow,
    webhook: { url: string; secret: string },
    position: number,
    entry: AuditEntry,
  ) => {
    const id = `audit_${row.id}_${position}`;
    const body = JSON.stringify({ type: "audit.entry", timestamp: entry.at, data: { workspaceId: row.id, ...entry } });
    const signed = signStandard([await keyOf(row.id, webhook)], id, clock.now(), body);
    const headers = Object.entries({ ...signed, "content-type": "application/json", "idempotency-key": id });
    const told = await fetchOutgoing(
      { method: "POST", url: webhook.url, headers, body },
      {
        fetch: (...request) => globalThis.fetch(...request),
        allowLoopback: env.ENVIRONMENT === "development",
        signal: AbortSignal.timeout(auditAnswerMs),
        // Whom it concerns is not for other servers.
        confidential: true,
      },
    );
    if (!told.ok) throw refused(`could not be asked: ${told.reason}`);
    await told.response.body?.cancel();
    if (!told.response.ok) throw refused(`answered ${told.response.status}`);
  };

  jobs.handle(kind, {
    atOnce: 1,
    async run() {
      for (;;) {
        const row = self.get();
        if (!row?.auditWebhook) return undefined;
        if (row.suspended) return clock.now() + suspendedLookMs;
        const next = audit.after(row.auditTold);
        if (!next) return undefined;
        await tell(row, row.auditWebhook, next.position, next.entry);
        await faultOnceStored("workspace.before-tell", object);
        // Another address may have been set meanwhile, which is told from its own place on.
        if (self.get()?.auditWebhook?.url !== row.auditWebhook.url) continue;
        db.update(workspaces).set({ auditTold: next.position }).run();
        self.forget();
      }
    },
  });

  return {
    /** Something was noted. In its transaction. */
    noted(): void {
      if (self.get()?.auditWebhook) jobs.set({ kind, key: kind });
    },

    /** The workspace goes on after a suspension. */
    resume: (): void => jobs.hurry(kind),
  };
};
