import { dayMs, isoTime } from "../shared/clock.ts";
import { expireAgainMs, expiredAtOnce, retentionLookMs } from "./bounds.ts";
import { expireMessages } from "./message-changes.ts";
import { spaceIn } from "./rights.ts";
import type { SpaceServices } from "./services.ts";
import { publicSpace, retentionOf } from "./settings.ts";

const kind = "retention";
/** Starts to look for what is older than the space keeps. In the transaction that sets how long that is. */
export const armRetention = ({ jobs, settings }: Pick<SpaceServices, "jobs" | "settings">): void => {
  if (retentionOf(settings.find()) !== undefined) jobs.set({ kind, key: kind, payload: { after: 0 } });
};

/**
 * Messages that are older than `retentionDays` are deleted, as by an admin: by a job, some at a time.
 *
 * Invariants
 * 1. While a space has such a setting, it has the job. A crash repeats the messages of one go, which changes nothing.
 * 2. A message is deleted within `retentionLookMs` after its time, once its tool call is over. While the workspace is
 *    suspended none is.
 */
export const handleRetention = (services: SpaceServices): void => {
  const { jobs, settings, clock } = services;
  jobs.handle(kind, {
    atOnce: 1,
    async run({ payload }) {
      const row = settings.find();
      const days = retentionOf(row);
      if (!row || days === undefined || row.deletedSeq !== null) return undefined;
      const now = clock.now();
      if (row.suspended) return now + retentionLookMs;
      const { after } = payload as { after: number };
      const expired = expireMessages(services, after, isoTime(now - days * dayMs), expiredAtOnce);
      const dueAt = now + (expired.more ? expireAgainMs : retentionLookMs);
      jobs.set({ kind, key: kind, payload: { after: expired.after }, dueAt });
      return undefined;
    },
  });
};

/** From the workspace: how long its spaces keep messages that say nothing of it themselves. */
export const setRetention = (services: SpaceServices, workspaceId: string, days: number | null): void => {
  const row = spaceIn(services, workspaceId);
  if (row.workspaceRetentionDays === days) return;
  services.record((append) => {
    const space = publicSpace({ ...row, workspaceRetentionDays: days });
    const { seq: version } = append({ type: "space.updated", space });
    services.settings.change({ workspaceRetentionDays: days, version });
    armRetention(services);
  });
};
