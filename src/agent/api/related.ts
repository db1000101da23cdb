import { sql } from "drizzle-orm";
import { ownPart } from "../../shared/ids.ts";
import { maxRelatedItems, maxRelatedRows } from "../bounds.ts";
import type { AgentRuntime, Area } from "./agent-runtime.ts";

/**
 * What a mind of an agent wrote down in runs that knew a message: the blocks that these edited or made, and the archival entries
 * that name the message or were kept by them. Their documents stay when the message goes; a person may delete them.
 */
const writesBlocks = new Set(["block_edit", "block_create"]);

/** The runs whose rows name the message, among the newest rows. */
const runsNaming = ({ db }: AgentRuntime, messageId: string): number[] => {
  const part = ownPart(messageId);
  const rows = db.all<{ run: number }>(sql`select distinct run_ordinal as run from
    (select run_ordinal, content, meta from journal order by seq desc limit ${maxRelatedRows})
    where instr(content, ${part}) > 0 or instr(meta, ${part}) > 0`);
  return rows.map(({ run }) => run);
};

export const relatedArea: Area<"related"> = {
  related: (runtime, messageId) => {
    const { services } = runtime;
    const runs = services.runs.those(runsNaming(runtime, messageId));
    const rows = services.journal.ofRuns(runs, { texts: false });
    const labels = rows.flatMap(({ meta }) =>
      meta?.kind === "assistant"
        ? meta.calls.flatMap(({ toolName, input }) => (writesBlocks.has(toolName) ? [labelIn(input)] : []))
        : [],
    );
    const own = new Set(services.blocks.list().map(({ label }) => label));
    const blocks = [...new Set(labels)].filter((label) => own.has(label));
    const kept = JSON.stringify(rows.filter(({ kind }) => kind === "result").map(({ content }) => content));
    const entries = services.archival
      .page(undefined, maxRelatedRows)
      .filter(({ id, source }) => source.messageId === messageId || kept.includes(id));
    const items = [
      ...blocks.map((label) => ({ kind: "block" as const, label })),
      ...entries.map(({ id }) => ({ kind: "archival" as const, id })),
    ];
    return items.slice(0, maxRelatedItems);
  },
};

const labelIn = (input: unknown): string =>
  typeof input === "object" && input !== null && "label" in input ? String(input.label) : "";
