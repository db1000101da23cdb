import * as z from "zod";
import { entityId, spaceId, workspaceId } from "./ids.ts";
import { component, strictComponent, Timestamp } from "./text.ts";

/** What may be erased. `person`: also a service. */
export const ErasureKind = z.enum(["person", "space", "agent", "workspace"]);
export type ErasureKind = z.infer<typeof ErasureKind>;

const subjectId = z.union(
  [entityId, spaceId, workspaceId],
  "must be the id of a person, a space, an agent or the workspace",
);

export const CreateErasure = strictComponent("CreateErasure", { kind: ErasureKind, id: subjectId });
export type CreateErasure = z.infer<typeof CreateErasure>;

export const Erasure = component("Erasure", {
  id: subjectId.meta({ description: "The id of what is erased, and the erasure's own" }),
  kind: ErasureKind,
  state: z.enum(["running", "done"]),
  objects: z
    .int()
    .meta({ description: "Objects that were visited whole: spaces, agents, compartments, the workspace" }),
  rows: z.int().meta({ description: "Rows that changed there, none of confidential spaces" }),
  requests: z.int().default(0).meta({ description: "How often the workspace asked these objects" }),
  left: z.int().meta({ description: "Objects that are not visited whole yet" }),
  waiting: z.array(z.string()).meta({ description: "The ids of the first of those that are left" }),
  unknown: z.array(z.string()).meta({ description: "What may be left and cannot be known, in words" }),
  createdAt: Timestamp,
  completedAt: Timestamp.optional(),
});
export type Erasure = z.infer<typeof Erasure>;

/** One go in a space: what is the entity's after this place of the log. `upTo`: what the first go answered. */
export type ErasureOf = { entityId: string; after: number; upTo?: number | undefined };

/**
 * How far an erasure has come in a space. `rows`: of this go. `names`: by which the entity was known there. `objects`: the
 * space, and those that it told. `isDone`: all who had it know.
 */
export type ErasedPart = {
  after: number;
  upTo: number;
  rows: number;
  names: string[];
  objects: number;
  isDone: boolean;
};
