import {
  type ChangeSettings,
  maxSpaceSettings,
  type NoticeKind,
  type Settings,
  type SpaceSettings,
} from "../protocol/notifications.ts";
import { ColloquyError } from "../shared/errors.ts";

/** What a person is alerted to. Pure. */
export const defaultSettings: Settings = {
  notifications: {
    mention: "when_away",
    reply: "when_away",
    direct: "when_away",
    needs_you: "when_away",
    run_failed: "when_away",
  },
  spaces: {},
  quietHours: null,
};

type SpaceChanges = NonNullable<NonNullable<ChangeSettings["spaces"]>[string]>;

/** Undefined where nothing is left that differs from the person's own. */
const changedSpace = (
  before: SpaceSettings = {},
  { muted, notifications }: SpaceChanges,
): SpaceSettings | undefined => {
  const isMuted = muted === undefined ? before.muted : muted;
  const kinds = Object.entries({ ...(notifications === null ? {} : before.notifications), ...notifications });
  const own: SpaceSettings["notifications"] = Object.fromEntries(
    kinds.filter(([, alerting]) => alerting !== null && alerting !== undefined),
  );
  const hasKinds = Object.keys(own ?? {}).length > 0;
  if (!isMuted && !hasKinds) return undefined;
  return { ...(isMuted && { muted: true as const }), ...(hasKinds && own && { notifications: own }) };
};

/** The settings after a change. A field that is left out stays. One that is null is taken away. Throws `limit_reached`. */
export const changedSettings = (before: Settings, changes: ChangeSettings): Settings => {
  const spaces = new Map(Object.entries(before.spaces));
  for (const [id, change] of Object.entries(changes.spaces ?? {})) {
    const next = change === null ? undefined : changedSpace(spaces.get(id), change);
    if (next) spaces.set(id, next);
    else spaces.delete(id);
  }
  if (spaces.size > maxSpaceSettings) {
    const most = `You have settings of ${maxSpaceSettings} spaces, which is the most (maxSpaceSettings)`;
    throw new ColloquyError("limit_reached", `${most}: take some away first`);
  }
  const kinds = Object.entries(changes.notifications ?? {}).filter(([, alerting]) => alerting !== undefined);
  return {
    notifications: { ...before.notifications, ...Object.fromEntries(kinds) },
    spaces: Object.fromEntries(spaces),
    quietHours: changes.quietHours === undefined ? before.quietHours : changes.quietHours,
  };
};

/** The clocks of a zone, as `22:00`. */
const timeIn = (zone: string, now: number): string =>
  new Intl.DateTimeFormat("en-GB", { timeZone: zone, hour: "2-digit", minute: "2-digit" }).format(now);

const isWithin = ({ from, to, zone }: NonNullable<Settings["quietHours"]>, now: number): boolean => {
  const time = timeIn(zone, now);
  return from < to ? from <= time && time < to : from <= time || time < to;
};

/** `isLookedAt`: some page of the person is. */
export const alerts = (
  settings: Settings,
  { kind, spaceId }: { kind: NoticeKind; spaceId: string },
  { now, isLookedAt }: { now: number; isLookedAt: boolean },
): boolean => {
  const { muted, notifications: own } = settings.spaces[spaceId] ?? {};
  if (muted && kind !== "needs_you") return false;
  const alerting = own?.[kind] ?? settings.notifications[kind];
  if (alerting === "never" || (alerting === "when_away" && isLookedAt)) return false;
  return !settings.quietHours || !isWithin(settings.quietHours, now);
};
