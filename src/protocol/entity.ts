import { z } from "zod";
import { entityId } from "./ids.ts";
import { Name, Timestamp } from "./text.ts";

export const EntityType = z.enum(["human", "agent", "service"]);
export type EntityType = z.infer<typeof EntityType>;

export const Role = z.enum(["member", "admin"]);
export type Role = z.infer<typeof Role>;

/** A participant of a workspace. */
export const Entity = z
  .object({
    id: entityId,
    type: EntityType,
    name: z.string(),
    role: Role,
    externalId: z.string().optional(),
    createdAt: Timestamp,
  })
  .meta({ id: "Entity" });
export type Entity = z.infer<typeof Entity>;

export const CreateEntity = z
  .strictObject({
    type: z.enum(["human", "service"], "must be human or service; agents are created with POST /v1/agents"),
    name: Name,
    role: Role.default("member"),
    externalId: z.string().min(1).max(256).optional(),
  })
  .meta({ id: "CreateEntity" });
export type CreateEntity = z.infer<typeof CreateEntity>;

export const UpdateEntity = z
  .strictObject({ name: Name.optional(), role: Role.optional(), externalId: z.string().min(1).max(256).optional() })
  .meta({ id: "UpdateEntity" });
export type UpdateEntity = z.infer<typeof UpdateEntity>;

/** A participant as a space shows it. */
export const Member = z
  .object({ id: entityId, type: EntityType, name: z.string(), joinedAt: Timestamp })
  .meta({ id: "Member" });
export type Member = z.infer<typeof Member>;
