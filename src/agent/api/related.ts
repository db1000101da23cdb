import { sql } from "drizzle-orm";
import * as z from "zod";
import { ownPart } from "../../shared/ids.ts";
import { maxRelatedItems, maxRelatedRows } from "../bounds.ts";
import type { RunRow } from "../runs.ts";
import { builtinTool } from "../tools/registry.ts";
import type { AgentRuntime, Area } from "./agent-runtime.ts";

/** The runs whose rows name the message, among the newest rows. */
const runsNaming = ({ db }: AgentRuntime, messageIds: string[]): number[] => {
  const parts = JSON.stringify(messageIds.map(ownPart));
  const rows = db.all<{ run: number }>(sql`select distinct run_ordinal as run from
    (select run_ordinal, content, meta from journal order by seq desc limit ${maxRelatedRows})
    where exists (select 1 from json_each(${parts}) where instr(content, value) > 0 or instr(meta, value) > 0)`);
  return rows.map(({ run }) => run);
};

/** The mind's own runs that knew it. For a run that a compartment was fed, it is the next that began there. */
const runsKnowing = (runtime: AgentRuntime, messageId: string): RunRow[] => {
  const { runs } = runtime.services;
  const naming = runs.those(runsNaming(runtime, [messageId]));
  const knowing = naming.flatMap((run) => (run.fed ? runs.begunAfter(run.ordinal, 0, 1) : run));
  return runs.those([...new Set(knowing.map(({ ordinal }) => ordinal))]);
};

/** The labels of blocks of which a kept version names it as a source. No cut of the journal takes these. */
const blocksNaming = ({ db }: AgentRuntime, messageId: string): string[] =>
  db
    .all<{ label: string }>(sql`select distinct label from blocks join block_versions on block_id = blocks.id
      where instr(sources, ${ownPart(messageId)}) > 0`)
    .map(({ label }) => label);

/**
 * Finds what a mind kept in runs that knew a message: blocks that they edited or made, and archival entries. These name
 * the message, or the journal tells that the runs kept them. Their documents stay when the message goes; a person may
 * delete them.
 */
export const relatedArea: Area<"related"> = {
  related: (runtime, messageId) => {
    const { services } = runtime;
    const runs = runsKnowing(runtime, messageId);
    const rows = services.journal.ofRuns(runs, { texts: false });
    const labels = rows.flatMap(({ meta }) =>
      meta?.kind === "assistant"
        ? meta.calls.flatMap(({ toolName, input }) => (builtinTool(toolName)?.writesBlock ? [labelIn(input)] : []))
        : [],
    );
    const found = new Set([...labels, ...blocksNaming(runtime, messageId)]);
    const blocks = services.blocks.list().filter(({ label }) => found.has(label));
    const kept = JSON.stringify(rows.filter(({ kind }) => kind === "result").map(({ content }) => content));
    const entries = services.archival
      .page(undefined, maxRelatedRows)
      .filter(({ id, source }) => source.messageId === messageId || kept.includes(id));
    const items = [
      ...blocks.map(({ label }) => ({ kind: "block" as const, label })),
      ...entries.map(({ id }) => ({ kind: "archival" as const, id })),
    ];
    return items.slice(0, maxRelatedItems);
  },
};

const labelIn = (input: unknown): string =>
  typeof input === "object" && input !== null && "label" in input ? String(input.label) : "";

const Said = z.tuple([z.object({ output: z.object({ value: z.object({ messageId: z.string() }) }) })]);

/** Summaries of other spaces, where runs that knew a message spoke, are made anew. In the transaction that ends a redaction. */
export const renewCarried = (runtime: AgentRuntime, sourceIds: string[]): void => {
  const { runs: all, journal, ids, redactions } = runtime.services;
  const runs = all.those(runsNaming(runtime, sourceIds));
  const said = journal.ofRuns(runs, { texts: false }).flatMap(({ kind, content }) => {
    if (kind === "call") return "messageId" in content && content.messageId !== undefined ? content.messageId : [];
    const found = kind === "result" && "content" in content ? Said.safeParse(content.content) : undefined;
    return found?.success ? found.data[0].output.value.messageId : [];
  });
  const own = new Set(sourceIds.map((id) => ids.ownerOf("msg", id)));
  const spaceIds = new Set(said.map((id) => ids.ownerOf("msg", id)));
  const since = Math.min(...runs.map(({ startedAt }) => startedAt));
  for (const spaceId of spaceIds) if (!own.has(spaceId)) redactions.renewSummary(spaceId, since);
};
