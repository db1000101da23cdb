import type { Redaction } from "../../protocol/message-change.ts";
import { unwrap } from "../../shared/errors.ts";
import { withTimeout } from "../../shared/timeouts.ts";
import { maxVersionsTakenBack, maxWordsTakenBack, mindAnswerMs } from "../bounds.ts";
import { type BlockRow, isSpaceId } from "../memory/blocks/shares.ts";
import { render } from "../memory/documents/render.ts";
import type { AgentRuntime, Area } from "./agent-runtime.ts";

/**
 * The agent is erased: what other agents were given of its blocks is removed from them too, in every version. A reader
 * has stored what it is to forget before the share ends, so a crash has it told again, which changes nothing.
 */
const linesOf = async ({ services }: AgentRuntime, { label, schema, description }: BlockRow): Promise<Set<string>> => {
  const versions = services.blocks.history(label, undefined, maxVersionsTakenBack).map(({ version }) => version);
  const lines = new Set([description]);
  for (const version of versions) {
    const { value } = await services.blocks.detail(label, version);
    for (const line of render(schema, value, { whole: true }).split("\n")) lines.add(line.trim());
  }
  lines.delete("");
  return lines;
};

/** The lines in parts that one redaction takes. */
const partsOf = (lines: Set<string>): string[][] => {
  const parts: string[][] = [];
  let room = 0;
  for (const line of lines) {
    if (line.length > room) {
      parts.push([]);
      room = maxWordsTakenBack;
    }
    parts.at(-1)?.push(line);
    room -= line.length;
  }
  return parts;
};

const takeBack = async (runtime: AgentRuntime, row: BlockRow): Promise<void> => {
  const { services } = runtime;
  const { id: agentId, workspaceId } = services.identity.get();
  const readers = services.shares.grants(row.id).filter(({ granteeId }) => !isSpaceId(granteeId));
  if (readers.length === 0) return;
  const redactions = partsOf(await linesOf(runtime, row)).map(
    (words, part): Redaction => ({ id: `${agentId} ${row.label} ${part}`, words, since: row.createdAt }),
  );
  for (const { granteeId } of readers) {
    const reader = services.env.AGENT.getByName(granteeId);
    const told = await withTimeout(mindAnswerMs, reader.redact(workspaceId, redactions));
    if (told.ok || told.problem.code !== "not_found") unwrap(told);
    const dropped = await withTimeout(mindAnswerMs, reader.dropSharedBlock(workspaceId, agentId, row.label));
    if (dropped.ok || dropped.problem.code !== "not_found") unwrap(dropped);
    services.shares.remove(row.id, granteeId);
  }
};

export const takingBackArea: Area<"takeBackBlocks"> = {
  takeBackBlocks: async (runtime) => {
    const rows = runtime.services.blocks.list();
    for (const row of rows) await takeBack(runtime, row);
    return { isDone: true };
  },
};
