import * as z from "zod";
import { Member } from "./entity.ts";
import { entityId, spaceId } from "./ids.ts";
import { Message } from "./message.ts";
import { ModelConfig } from "./model-config.ts";
import { component, Name, patchOf, strictComponent, Timestamp } from "./text.ts";
import { StorageUse } from "./usage.ts";

export const WakePolicy = z.enum(["every_message", "addressed"]);
export type WakePolicy = z.infer<typeof WakePolicy>;

/**
 * What an agent's message in another space tells of the message here that caused it: `reference` which one it is,
 * `text` its text and names too, `name` the space's name too, `none` nothing.
 */
export const ShareOrigin = z.enum(["reference", "text", "name", "none"]);
export type ShareOrigin = z.infer<typeof ShareOrigin>;

/**
 * Asked, in a space of wake policy `addressed`, about each message of a person that addresses nobody: which agents wake.
 * Only an admin or a secret key sets it, as it may name a secret of the workspace.
 */
export const RouterConfig = strictComponent("Router", {
  model: ModelConfig,
  instructions: z.string().max(4000).optional(),
  /** Billed tokens, input and output, UTC day. */
  maxTokensPerDay: z.int().min(1000).max(1_000_000_000).default(200_000),
});
export type RouterConfig = z.infer<typeof RouterConfig>;

/**
 * The people of a confidential space who let an agent say elsewhere what it was told there, and how many of them must
 * agree. Without `approvers`, every person of the space may.
 */
export const Release = strictComponent("Release", {
  approvers: z.array(entityId).min(1).max(50).optional(),
  quorum: z.int().min(1).max(50).default(1),
});
export type Release = z.infer<typeof Release>;

/** Days after which messages are deleted. */
export const RetentionDays = z.int().min(1).max(3650);
const retention = "Days after which messages are deleted, as if an admin did it";

export const Space = component("Space", {
  id: spaceId,
  name: z.string(),
  wakePolicy: WakePolicy,
  shareOrigin: ShareOrigin,
  /** What is said here stays here: an agent's runs elsewhere know nothing of it. Left out where the space is open. */
  confidential: z.literal(true).optional(),
  release: Release.optional(),
  router: RouterConfig.optional(),
  retentionDays: RetentionDays.optional().describe(`${retention}. Left out: workspaceRetentionDays`),
  workspaceRetentionDays: RetentionDays.optional().describe("What its workspace says, for spaces that do not"),
  createdBy: entityId.optional(),
  createdAt: Timestamp,
  members: z.array(Member).optional(),
  storage: StorageUse.optional().describe("Of one space that is read by its id"),
  suspended: z.literal(true).optional().describe("Its workspace is suspended: it is read, and takes nothing"),
});
export type Space = z.infer<typeof Space>;

export const maxMembers = 1000;

export const CreateSpace = strictComponent("CreateSpace", {
  name: Name,
  members: z.array(z.strictObject({ entityId })).max(maxMembers).default([]),
  wakePolicy: WakePolicy.default("every_message"),
  shareOrigin: ShareOrigin.default("reference"),
  confidential: z.boolean().default(false),
  /** Only of a confidential space. */
  release: Release.optional(),
  router: RouterConfig.optional(),
  retentionDays: RetentionDays.optional().describe(retention),
});
export type CreateSpace = z.infer<typeof CreateSpace>;

export const UpdateSpace = strictComponent("UpdateSpace", {
  ...patchOf(CreateSpace.omit({ members: true }).shape),
  /** `null` removes it, as for `router`. */
  release: Release.nullable().optional(),
  router: RouterConfig.nullable().optional(),
  retentionDays: RetentionDays.nullable().optional().describe(`${retention}. \`null\`: as the workspace says`),
});
export type UpdateSpace = z.infer<typeof UpdateSpace>;

export const AddMember = strictComponent("AddMember", { entityId });

/** Unread counts stop here: "99" reads as "99 or more". */
export const maxUnreadCount = 99;

export const SpaceListItem = Space.omit({ members: true, router: true, release: true, storage: true, suspended: true })
  .extend({ unreadCount: z.int().min(0).max(maxUnreadCount).optional(), lastMessage: Message.optional() })
  .meta({ id: "SpaceListItem" });
export type SpaceListItem = z.infer<typeof SpaceListItem>;
