import * as z from "zod";
import { deviceId, entityId, messageId, spaceId } from "./ids.ts";
import { component, Name, strictComponent, Timestamp, TimeZone } from "./text.ts";

/** What a person is told of one by one, what alerts them, and the devices that are told by Web Push. */

/** Spaces that one person keeps settings of, and devices. */
export const maxSpaceSettings = 500;
export const maxDevices = 20;

export const noticeKinds = ["mention", "reply", "direct", "needs_you", "run_failed"] as const;
export type NoticeKind = (typeof noticeKinds)[number];

/** What a person is told of one by one. Its id follows from the message and the kind, so that twice is once. */
export const Notification = component("Notification", {
  id: z.string(),
  kind: z.enum(noticeKinds),
  spaceId,
  messageId,
  title: z.string(),
  body: z.string(),
  at: Timestamp,
  by: entityId.optional().describe("Of `run_failed`: the agent. It is taken back once the agent has left the space"),
  quiet: z.literal(true).optional().describe("The person's settings ask that it alerts nobody"),
});
export type Notification = z.infer<typeof Notification>;

const Alerting = z.enum(["always", "when_away", "never"]).meta({
  description: "`when_away`: not while one of the person's pages is looked at",
});

const ofKinds = <Schema extends z.ZodType>(schema: Schema) =>
  z.strictObject({ mention: schema, reply: schema, direct: schema, needs_you: schema, run_failed: schema });

const TimeOfDay = z.string().regex(/^(?:[01]\d|2[0-3]):[0-5]\d$/, "must be a time of day, such as 22:00");

const QuietHours = z
  .strictObject({ from: TimeOfDay, to: TimeOfDay, zone: TimeZone })
  .refine(({ from, to }) => from !== to, { path: ["to"], message: "must not be the same as from" })
  .meta({ description: "By the clocks of the zone. Where `to` is the earlier, they end on the next day" });

const muted = z.boolean().meta({ description: "Nothing of the space alerts, but `needs_you`" });

export const Settings = component("Settings", {
  notifications: ofKinds(Alerting),
  spaces: z.record(
    z.string(),
    z.object({ muted: z.literal(true).optional(), notifications: ofKinds(Alerting.optional()).optional() }),
  ),
  quietHours: QuietHours.nullable(),
});
export type Settings = z.infer<typeof Settings>;
export type SpaceSettings = Settings["spaces"][string];

/** What is left out stays. `null` takes away. */
export const ChangeSettings = strictComponent("ChangeSettings", {
  notifications: ofKinds(Alerting.optional()).optional(),
  spaces: z
    .record(
      spaceId,
      z
        .strictObject({
          muted: muted.nullable().optional(),
          notifications: ofKinds(Alerting.nullable().optional()).nullable().optional(),
        })
        .nullable(),
    )
    .optional(),
  quietHours: QuietHours.nullable().optional(),
});
export type ChangeSettings = z.infer<typeof ChangeSettings>;

export const Device = component("Device", {
  id: deviceId,
  name: z.string(),
  host: z.string().meta({ description: "Of its push service" }),
  createdAt: Timestamp,
  lastPushAt: Timestamp.optional(),
});
export type Device = z.infer<typeof Device>;

const bytes = (count: number, what: string) =>
  z.string().refine((text) => {
    const isBase64Url = /^[A-Za-z0-9_-]+$/.test(text);
    return isBase64Url && Math.floor((text.length * 3) / 4) === count;
  }, `must be ${what}, as base64url without padding`);

/** A browser's `PushSubscription`, as its `toJSON` says. */
export const NewDevice = strictComponent("NewDevice", {
  name: Name.optional(),
  endpoint: z.url().max(1024),
  expirationTime: z.number().nullable().optional().meta({ description: "It is not looked at" }),
  keys: z.strictObject({
    p256dh: bytes(65, "an uncompressed point of P-256"),
    auth: bytes(16, "16 bytes"),
  }),
});
export type NewDevice = z.infer<typeof NewDevice>;

export const PushKey = component("PushKey", {
  publicKey: z.string().meta({ description: "The `applicationServerKey` of a subscription, as base64url" }),
});
