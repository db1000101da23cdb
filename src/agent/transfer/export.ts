import { max, sql } from "drizzle-orm";
import type { ExportBounds, ExportHead, ExportPage, ExportPlace } from "../../protocol/transfer-rpc.ts";
import { type CarriedHead, type CarriedList, carriedLists } from "../../protocol/exported-agent.ts";
import { isoTime } from "../../shared/clock.ts";
import type { Database } from "../../shared/database.ts";
import { exportPageCharacters, exportTailBytes } from "../bounds.ts";
import { archival } from "../memory/search/schema.ts";
import { continuityOf } from "../run/continuity/continuities.ts";
import type { RunServices } from "../run/run-services.ts";
import { isUndone } from "../run/settle-open-calls.ts";
import { mayHaveActed, openCalls } from "../run/side-effects.ts";
import { journal, runs, windows } from "../schema.ts";
import { nextBlock } from "./block-kinds.ts";
import type { Place, Read } from "./kind-store.ts";
import { namesFor } from "./origin.ts";
import { lists } from "./kind-stores.ts";

/**
 * An agent, read page by page while it goes on.
 *
 * Invariants
 * 1. What was lived through ends where the export began: a run that ends later is in it as far as it had come.
 * 2. A page is as long as one answer between objects may be, however large the agent is.
 */
const boundsOf = (db: Database, at: number): ExportBounds => ({
  at,
  journal:
    db
      .select({ to: max(journal.seq) })
      .from(journal)
      .get()?.to ?? 0,
  run:
    db
      .select({ to: max(runs.ordinal) })
      .from(runs)
      .get()?.to ?? 0,
  window:
    db
      .select({ to: max(windows.id) })
      .from(windows)
      .get()?.to ?? 0,
  archival:
    db
      .select({ to: max(archival.ordinal) })
      .from(archival)
      .get()?.to ?? 0,
});

/** As a run that is canceled (`think/finish.ts`): who carries an agent takes along all that it said and stored. */
const cutOf = (services: RunServices, to: number): ExportBounds["cut"] => {
  const run = services.runs.active().find((each) => continuityOf(each).keepsRuns);
  if (!run) return undefined;
  const rows = services.journal.ofRun(run, to);
  if (!mayHaveActed(services, run, rows)) return undefined;
  const open = openCalls(rows).map(({ step, call: { callId, toolName }, begun }) => ({
    ...{ step, callId, toolName },
    ...(isUndone(services.calls.get(callId), begun) ? { undone: true as const } : {}),
  }));
  return { run: run.ordinal, open };
};

const leftBehind = (db: Database): CarriedHead["left"] => {
  const count = (counted: ReturnType<typeof sql>): number => db.get<{ rows: number }>(counted).rows;
  return {
    events: count(sql`select count(*) as rows from inbox`),
    runs: count(sql`select count(*) as rows from runs where completed_at is null`),
    calls: count(sql`select count(*) as rows from calls where phase <> 'done'`),
    hooks: count(sql`select count(*) as rows from hooks`),
  };
};

export const exportHead = async (db: Database, services: RunServices): Promise<ExportHead> => {
  const { identity, clock, env } = services;
  const { id, workspaceId, config, createdAt, updatedAt, activeSpaceId, correction, correctionModel } = identity.get();
  const head: CarriedHead = {
    id,
    config,
    createdAt: isoTime(createdAt),
    updatedAt: isoTime(updatedAt),
    activeSpaceId,
    ...(correctionModel === null ? {} : { correction: { ratio: correction, modelId: correctionModel } }),
    left: leftBehind(db),
  };
  const ends = boundsOf(db, clock.now());
  const cut = cutOf(services, ends.journal);
  const bounds = cut ? { ...ends, cut } : ends;
  return { head, bounds, names: await namesFor(db, env.WORKSPACE.getByName(workspaceId), id) };
};

const listAfter = (list: CarriedList): CarriedList | undefined => carriedLists[carriedLists.indexOf(list) + 1];

/** A block that was changed much since its snapshot is folded first: then it fits into one page. */
const prepared = async (db: Database, { blocks }: RunServices, after: Place): Promise<void> => {
  const next = nextBlock(db, Number(after[0] ?? 0));
  if (next && next.tailBytes > exportTailBytes) await blocks.fold(next.label);
};

/** From `from` on, or from the beginning. */
export const exportPage = async (
  db: Database,
  services: RunServices,
  bounds: ExportBounds,
  from: ExportPlace | null,
): Promise<ExportPage> => {
  const pages: ExportPage["parts"] = [];
  let room = exportPageCharacters;
  let place: ExportPlace | null = from ?? { list: "names", after: [] };
  while (place && room > 0) {
    const { list, after }: ExportPlace = place;
    if (list === "blocks") await prepared(db, services, after);
    const rows: Read<CarriedList>[] = lists[list].read(db, after, bounds);
    const items: string[] = [];
    for (const { item, place: to } of rows) {
      if (room <= 0) break;
      const text = JSON.stringify(item);
      room -= text.length;
      items.push(text);
      place = { list, after: to };
    }
    if (items.length > 0) pages.push({ list, items });
    else {
      const next = listAfter(list);
      place = next ? { list: next, after: [] } : null;
    }
  }
  return { parts: pages, next: place };
};
