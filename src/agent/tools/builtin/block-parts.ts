import { z } from "zod";
import { acts, looks, type ToolServices } from "../tool.ts";

/** What the tools for blocks of memory have in common. */
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
