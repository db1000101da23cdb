import { z } from "zod";
import { Member } from "./entity.ts";
import { entityId, spaceId } from "./ids.ts";
import { Message } from "./message.ts";
import { Name, Timestamp } from "./text.ts";

export const WakePolicy = z.enum(["every_message", "addressed"]);
export type WakePolicy = z.infer<typeof WakePolicy>;

/** How much of this space an agent's message in another space may tell: the text, only the name, or nothing. */
export const ShareOrigin = z.enum(["text", "name", "none"]);
export type ShareOrigin = z.infer<typeof ShareOrigin>;

export const Space = z
  .object({
    id: spaceId,
    name: z.string(),
    wakePolicy: WakePolicy,
    shareOrigin: ShareOrigin,
    createdBy: entityId.optional(),
    createdAt: Timestamp,
    members: z.array(Member).optional(),
  })
  .meta({ id: "Space" });
export type Space = z.infer<typeof Space>;

export const maxMembers = 1000;

export const CreateSpace = z
  .strictObject({
    name: Name,
    members: z.array(z.strictObject({ entityId })).max(maxMembers).default([]),
    wakePolicy: WakePolicy.default("every_message"),
    shareOrigin: ShareOrigin.default("text"),
  })
  .meta({ id: "CreateSpace" });
export type CreateSpace = z.infer<typeof CreateSpace>;

export const UpdateSpace = z
  .strictObject({ name: Name.optional(), wakePolicy: WakePolicy.optional(), shareOrigin: ShareOrigin.optional() })
  .meta({ id: "UpdateSpace" });
export type UpdateSpace = z.infer<typeof UpdateSpace>;

export const AddMember = z.strictObject({ entityId }).meta({ id: "AddMember" });

/** Unread counts stop here: "99" reads as "99 or more". */
export const maxUnreadCount = 99;

export const SpaceListItem = Space.omit({ members: true })
  .extend({ unreadCount: z.int().min(0).max(maxUnreadCount).optional(), lastMessage: Message.optional() })
  .meta({ id: "SpaceListItem" });
export type SpaceListItem = z.infer<typeof SpaceListItem>;
