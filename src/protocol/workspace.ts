import { z } from "zod";
import { entityId, keyId, workspaceId } from "./ids.ts";
import { Name, Timestamp } from "./text.ts";

export const Workspace = z
  .object({ id: workspaceId, name: z.string(), createdAt: Timestamp })
  .meta({ id: "Workspace" });
export type Workspace = z.infer<typeof Workspace>;

export const NameOnly = z.strictObject({ name: Name }).meta({ id: "NameOnly" });

export const Key = z.object({ id: keyId, createdAt: Timestamp }).meta({ id: "Key" });
export type Key = z.infer<typeof Key>;

/** A workspace secret: at most 8 KiB, written and never read back. */
export const PutSecret = z.strictObject({ value: z.string().min(1).max(8192) }).meta({ id: "PutSecret" });

export const minTokenSeconds = 1;
export const maxTokenSeconds = 30 * 24 * 60 * 60;
export const defaultTokenSeconds = 60 * 60;

export const CreateToken = z
  .strictObject({
    entityId,
    expiresInSeconds: z.int().min(minTokenSeconds).max(maxTokenSeconds).default(defaultTokenSeconds),
  })
  .meta({ id: "CreateToken" });

export const Token = z.object({ token: z.string(), expiresAt: Timestamp }).meta({ id: "Token" });
