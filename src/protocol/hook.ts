import * as z from "zod";
import { hookId } from "./ids.ts";
import { Name, strictComponent, Timestamp } from "./text.ts";

/** How a webhook's sender signs its deliveries. */
export const HookScheme = z.enum(["standard", "github", "header"]);
export type HookScheme = z.infer<typeof HookScheme>;

/** A placeholder in a template: the event's type, the payload, or a value at a path in the payload. */
export const placeholder = /\{\{\s*(event|payload)((?:\.[^\s.{}]+)*)\s*\}\}/g;
const maxPlaceholders = 50;

/** A text with placeholders: it picks what of a payload the agent reads. */
const HookTemplate = z
  .string()
  .min(1)
  .max(4000)
  .refine((template) => template.isWellFormed(), "must be well-formed Unicode")
  .refine(
    (template) => !/\{\{|\}\}/.test(template.replaceAll(placeholder, "")),
    "must hold no {{…}} but {{event}}, {{payload}} and paths such as {{payload.issue.title}} or {{payload.commits.0.id}}",
  )
  .refine(
    (template) => [...template.matchAll(placeholder)].length <= maxPlaceholders,
    `must hold at most ${maxPlaceholders} placeholders`,
  );

/** Types of events that the agent is told of: each stands for itself and for all below it (`issues.opened`). */
const EventTypes = z.array(z.string().trim().min(1).max(100)).min(1).max(50);

const HeaderName = z.string().regex(/^[A-Za-z0-9-]{1,64}$/, "must be a header's name, such as X-Gitlab-Token");

/** The sender's own secret, where it has one already; its scheme says which it takes. Else one is made. */
const Secret = z
  .string()
  .max(256)
  .regex(/^[\x20-\x7e]*$/, "must be of visible ASCII characters");

const common = {
  name: Name.meta({ description: "What the agent knows the sender by", example: "github" }),
  template: HookTemplate.optional(),
  events: EventTypes.optional(),
  secret: Secret.optional(),
};

export const defaultSecretHeader = "x-webhook-secret";

export const CreateHook = z
  .discriminatedUnion("scheme", [
    z.strictObject({ scheme: z.literal("standard"), ...common }),
    z.strictObject({ scheme: z.literal("github"), ...common }),
    z.strictObject({
      scheme: z.literal("header"),
      ...common,
      /** The header with the secret. In `Authorization` it may follow `Bearer `. */
      header: HeaderName.default(defaultSecretHeader),
      /** The header with the delivery's id. Without one, the same body within five minutes is the same delivery. */
      idHeader: HeaderName.optional(),
      /** The header with the event's type. */
      eventHeader: HeaderName.optional(),
    }),
  ])
  .meta({ id: "CreateHook" });
export type CreateHook = z.infer<typeof CreateHook>;

/** `null` takes a template or a choice of events away. */
export const UpdateHook = strictComponent("UpdateHook", {
  name: Name.optional(),
  template: HookTemplate.nullable().optional(),
  events: EventTypes.nullable().optional(),
});
export type UpdateHook = z.infer<typeof UpdateHook>;

const defaultGraceSeconds = 24 * 60 * 60;
const maxGraceSeconds = 7 * defaultGraceSeconds;

/** The secret that was valid until now stays so for the grace; one that was in its grace already ends. */
export const RotateHook = strictComponent("RotateHook", {
  secret: Secret.optional(),
  graceSeconds: z.int().min(0).max(maxGraceSeconds).default(defaultGraceSeconds),
});
export type RotateHook = z.infer<typeof RotateHook>;

/** A way in for one sender's webhooks. Its secrets are never read back. */
export const HookSettings = z.object({
  id: hookId,
  scheme: HookScheme,
  name: z.string(),
  header: z.string().optional(),
  idHeader: z.string().optional(),
  eventHeader: z.string().optional(),
  template: z.string().optional(),
  events: z.array(z.string()).optional(),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  /** After a rotation: until when the secret before is valid too. */
  previousSecretUntil: Timestamp.optional(),
});
export type HookSettings = z.infer<typeof HookSettings>;

export const Hook = HookSettings.extend({
  url: z.string().describe("Where the sender posts to"),
}).meta({ id: "Hook" });
export type Hook = z.infer<typeof Hook>;
