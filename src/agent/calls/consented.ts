import type { Approval, ToolConfig } from "../../protocol/tool.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { builtinNames, builtinTool } from "../tools/registry.ts";
import { callBlocks } from "./call-blocks.ts";
import type { CallRow } from "./call-row.ts";
import type { CallServices } from "./call-services.ts";

/**
 * Calls of built-in tools that people must agree to first. They are kept and shown like those of a tool that an owner
 * wrote, whose names are never those of built-in ones.
 */
export const consentedTool = (name: string, approval: Approval): ToolConfig => ({
  name,
  description: name,
  inputSchema: {},
  async: false,
  timeoutMs: 30_000,
  // The call's id makes it change nothing twice.
  idempotent: true,
  executionType: "internal",
  approval,
});

export const isConsented = ({ name }: ToolConfig): boolean => builtinNames.has(name);

/** Does what was agreed to. Throws what refuses it. */
export const callConsented = async (services: CallServices, row: CallRow, signal: AbortSignal): Promise<unknown> => {
  const { callId, tool, input } = row;
  const known = builtinTool(tool.name);
  if (!known?.consent) throw new ColloquyError("tool_unknown", `there is no tool named ${tool.name} any more`);
  const blocks = callBlocks(services, { callId, replayed: true, consented: true, signal });
  return known.consent.carryOut(input, blocks);
};
