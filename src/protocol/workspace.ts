import { z } from "zod";
import { entityId, keyId, workspaceId } from "./ids.ts";
import { component, Name, strictComponent, Timestamp } from "./text.ts";

export const Workspace = component("Workspace", { id: workspaceId, name: z.string(), createdAt: Timestamp });
export type Workspace = z.infer<typeof Workspace>;

export const NameOnly = strictComponent("NameOnly", { name: Name });

export const Key = component("Key", { id: keyId, createdAt: Timestamp });
export type Key = z.infer<typeof Key>;

/** A workspace secret: at most 8 KiB, written and never read back. */
export const PutSecret = strictComponent("PutSecret", { value: z.string().min(1).max(8192) });

const maxTokenSeconds = 30 * 24 * 60 * 60;

export const CreateToken = strictComponent("CreateToken", {
  entityId,
  expiresInSeconds: z.int().min(1).max(maxTokenSeconds).default(3600),
});

export const Token = component("Token", { token: z.string(), expiresAt: Timestamp });
