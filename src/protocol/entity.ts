import * as z from "zod";
import { entityId } from "./ids.ts";
import { component, Name, strictComponent, Timestamp } from "./text.ts";

export const EntityType = z.enum(["human", "agent", "service"]);
export type EntityType = z.infer<typeof EntityType>;

export const Role = z.enum(["member", "admin"]);
export type Role = z.infer<typeof Role>;

/** Stands in place of the name of somebody who was erased. */
export const erasedName = "[erased]";
/** Says that words are of who is erased. Nobody can write it: no word of a message is blank. */
export const erasedMark = "";

/** A participant of a workspace. */
export const Entity = component("Entity", {
  id: entityId,
  type: EntityType,
  name: z.string(),
  role: Role,
  externalId: z.string().optional(),
  createdAt: Timestamp,
});
export type Entity = z.infer<typeof Entity>;

export const CreateEntity = strictComponent("CreateEntity", {
  type: z.enum(["human", "service"], "must be human or service; agents are created with POST /v1/agents"),
  name: Name,
  role: Role.default("member"),
  externalId: z.string().min(1).max(256).optional(),
});
export type CreateEntity = z.infer<typeof CreateEntity>;

export const UpdateEntity = strictComponent("UpdateEntity", {
  name: Name.optional(),
  role: Role.optional(),
  externalId: z.string().min(1).max(256).optional(),
});
export type UpdateEntity = z.infer<typeof UpdateEntity>;

/** A participant as a space shows it. */
export const Member = component("Member", { id: entityId, type: EntityType, name: z.string(), joinedAt: Timestamp });
export type Member = z.infer<typeof Member>;
