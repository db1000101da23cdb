import * as z from "zod";
import { ColloquyError } from "../../../shared/errors.ts";
import type { BlockRow } from "../../memory/blocks/shares.ts";
import { acts, looks, type ToolServices } from "../tool.ts";

/** Parts that the tools for blocks of memory share. */
export const label = z.string().max(64);
export const from = z.string().max(64).optional().describe("Its owner, if another agent shares it.");
export const reads = { ...looks, showsInHistory: true, ofMemory: true } as const;
export const changes = { ...acts, ofMemory: true } as const;

/** Does it, and has no more to say. */
export const done = async (work: Promise<unknown>) => {
  await work;
  return { value: { success: true } };
};

/** The writer of the agent's own blocks. */
export const author = ({ identity }: ToolServices): string => `agent:${identity.get().id}`;

/** Throws `not_found`, and `forbidden` for a block of another agent. */
export const ownBlock = ({ blocks, sharedBlocks }: ToolServices, name: string): BlockRow => {
  const row = sharedBlocks.findToChange(name);
  if (!row) return blocks.get(name);
  const owner = JSON.stringify(row.ownerName);
  throw new ColloquyError("forbidden", `"${name}" is a block of ${owner}: only its owner may do that with it`);
};
