import { z } from "zod";
import { BlockDetail } from "./block.ts";
import { Problem } from "./problem.ts";
import { Label } from "./text.ts";

/**
 * The frames of a block's stream. Every one carries all that the block is then, and as `cursor` its version: who comes
 * back misses nothing that still stands.
 */
const cursor = z.int();

export const BlockWelcomeFrame = z.object({ type: z.literal("welcome"), cursor, block: BlockDetail });
/** `by`: whose edit it was, as in the block's history without its manner. */
export const BlockChangedFrame = z.object({
  type: z.literal("block.changed"),
  cursor,
  block: BlockDetail,
  by: z.string(),
});
export const BlockDeletedFrame = z.object({ type: z.literal("block.deleted"), label: Label, by: z.string() });
const BlockErrorFrame = Problem.omit({ type: true }).extend({ type: z.literal("error") });

export const BlockFrame = z.discriminatedUnion("type", [
  BlockWelcomeFrame,
  BlockChangedFrame,
  BlockDeletedFrame,
  BlockErrorFrame,
]);
export type BlockFrame = z.infer<typeof BlockFrame>;
