import * as z from "zod";
import { archivalId, entityId, messageId, spaceId } from "./ids.ts";
import { boundedText, component, strictComponent, Timestamp, textBytes } from "./text.ts";

/** The most UTF-8 that one archival entry may hold, in bytes, and its metadata as JSON. */
export const maxArchivalBytes = 64 * 1024;
export const maxArchivalMetadataBytes = 8 * 1024;

/** The speaker of a fact, its space and its message. In a group a fact without its speaker is worth little. */
export const ArchivalSource = strictComponent("ArchivalSource", {
  spaceId: spaceId.optional(),
  messageId: messageId.optional(),
  authorId: entityId.optional(),
});
export type ArchivalSource = z.infer<typeof ArchivalSource>;

export const ArchivalContent = boundedText(maxArchivalBytes, "maxArchivalBytes");

export const ArchivalMetadata = z
  .record(z.string().min(1).max(64), z.json())
  .refine((metadata) => textBytes(JSON.stringify(metadata)) <= maxArchivalMetadataBytes, {
    error: `must be at most ${maxArchivalMetadataBytes} bytes as JSON (maxArchivalMetadataBytes)`,
  });

export const CreateArchival = strictComponent("CreateArchival", {
  content: ArchivalContent,
  metadata: ArchivalMetadata.default({}),
  source: ArchivalSource.default({}),
});
export type CreateArchival = z.infer<typeof CreateArchival>;

export const ArchivalEntry = component("ArchivalEntry", {
  id: archivalId,
  content: z.string(),
  metadata: z.record(z.string(), z.json()),
  source: ArchivalSource,
  createdAt: Timestamp,
  open: z.literal(true).optional().describe("In an answer of a confidential space: kept outside of it"),
});
export type ArchivalEntry = z.infer<typeof ArchivalEntry>;
