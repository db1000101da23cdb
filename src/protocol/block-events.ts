import { z } from "zod";
import { BlockDetail } from "./block.ts";
import { Problem } from "./problem.ts";
import { Label } from "./text.ts";

/**
 * The frames of a block's stream. Every one carries all that the block is then, and as `cursor` its version: who comes
 * back misses nothing that still stands.
 */
const cursor = z.int();

export const BlockFrame = z.discriminatedUnion("type", [
  z.object({ type: z.literal("welcome"), cursor, block: BlockDetail }),
  /** `by`: the author of the edit, as in the block's history without its manner. */
  z.object({ type: z.literal("block.changed"), cursor, block: BlockDetail, by: z.string() }),
  z.object({ type: z.literal("block.deleted"), label: Label, by: z.string() }),
  Problem.omit({ type: true }).extend({ type: z.literal("error") }),
]);
export type BlockFrame = z.infer<typeof BlockFrame>;
