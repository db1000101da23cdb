import { sql } from "drizzle-orm";
import * as z from "zod";
import { unwrap } from "../../shared/errors.ts";
import { ownPart } from "../../shared/ids.ts";
import { withTimeout } from "../../shared/timeouts.ts";
import { maxCompartmentsAtOnce, maxRelatedItems, maxRelatedRows, mindAnswerMs } from "../bounds.ts";
import type { AgentRuntime, Area } from "./agent-runtime.ts";

/**
 * Finds what a mind kept in runs that knew a message: blocks that they edited or made, and archival entries that name it or
 * that they kept. Their documents stay when the message goes; a person may delete them.
 */
const writesBlocks = new Set(["block_edit", "block_create"]);

/** The runs whose rows name the message, among the newest rows. */
const runsNaming = ({ db }: AgentRuntime, messageIds: string[]): number[] => {
  const parts = JSON.stringify(messageIds.map(ownPart));
  const rows = db.all<{ run: number }>(sql`select distinct run_ordinal as run from
    (select run_ordinal, content, meta from journal order by seq desc limit ${maxRelatedRows})
    where exists (select 1 from json_each(${parts}) where instr(content, value) > 0 or instr(meta, value) > 0)`);
  return rows.map(({ run }) => run);
};

export const relatedArea: Area<"related"> = {
  related: (runtime, messageId) => {
    const { services } = runtime;
    const runs = services.runs.those(runsNaming(runtime, [messageId]));
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

/** Messages that runs which knew one said in other spaces: its words, told as their origin or summarised, go there too. */
export const carriedKind = "carried";

const Said = z.tuple([z.object({ output: z.object({ value: z.object({ messageId: z.string() }) }) })]);

/** In the transaction that ends a redaction. */
export const tellCarried = (runtime: AgentRuntime, sourceIds: string[]): void => {
  const { jobs, services } = runtime;
  const runs = services.runs.those(runsNaming(runtime, sourceIds));
  const said = services.journal.ofRuns(runs, { texts: false }).flatMap(({ kind, content }) => {
    if (kind === "call") return "messageId" in content && content.messageId !== undefined ? content.messageId : [];
    const found = kind === "result" && "content" in content ? Said.safeParse(content.content) : undefined;
    return found?.success ? found.data[0].output.value.messageId : [];
  });
  const bySpace = Map.groupBy(new Set(said), (id) => services.ids.ownerOf("msg", id));
  const since = Math.min(...runs.map(({ startedAt }) => startedAt));
  for (const sourceId of sourceIds) {
    const own = services.ids.ownerOf("msg", sourceId);
    for (const [spaceId, messageIds] of bySpace) {
      if (spaceId === own) continue;
      services.redactions.renewSummary(spaceId, since);
      jobs.set({ kind: carriedKind, key: `${spaceId} ${sourceId}`, payload: { spaceId, sourceId, messageIds } });
    }
  }
};

export const handleCarried = ({ jobs, services }: AgentRuntime): void =>
  jobs.handle(carriedKind, {
    atOnce: maxCompartmentsAtOnce,
    async run({ payload }) {
      const { spaceId, sourceId, messageIds } = payload as Record<"spaceId" | "sourceId", string> & {
        messageIds: string[];
      };
      const { id, workspaceId } = services.identity.get();
      const space = services.env.SPACE.getByName(spaceId);
      const told = await withTimeout(mindAnswerMs, space.forgetOrigin(workspaceId, id, sourceId, messageIds));
      // A space that is no more tells nobody.
      if (told.ok || told.problem.code !== "not_found") unwrap(told);
      return undefined;
    },
  });
