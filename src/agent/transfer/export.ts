import { sql } from "drizzle-orm";
import type { ExportBounds, ExportPage, ExportPlace } from "../../protocol/agent-rpc.ts";
import {
  type ExportedHead,
  type ExportedLine,
  exportFormat,
  exportVersion,
  type RowKind,
  type RowOf,
  rowKinds,
} from "../../protocol/exported-agent.ts";
import type { WorkspaceRpc } from "../../protocol/rpc.ts";
import { isoTime } from "../../shared/clock.ts";
import type { Database } from "../../shared/database.ts";
import { log } from "../../shared/log.ts";
import { exportPageCharacters, exportTailBytes, maxExportedNames, maxNamesAsked } from "../bounds.ts";
import { asLabel } from "../redaction/places.ts";
import { correctionOf } from "../run/composing.ts";
import { continuityOf } from "../run/continuity/continuities.ts";
import { mayHaveActed } from "../run/finish.ts";
import { isUndone } from "../run/results.ts";
import { openCalls, readRows } from "../run/run-rows.ts";
import type { RunServices } from "../run/run-services.ts";
import { spaces } from "../schema.ts";
import { type After, type KindStore, kindStores } from "./kinds.ts";

/**
 * Reads an agent page by page while it goes on.
 *
 * Invariants
 * 1. History ends where the export began: a run that ends later is exported as far as it had come.
 * 2. A page is as long as one answer between objects may be, however large the agent is.
 */
const lineOf = (line: ExportedLine): string => `${JSON.stringify(line)}\n`;

/** The run under way is exported as a canceled one: with all that it said and stored. */
const cutOf = (services: RunServices, to: number): Pick<ExportBounds, "cut"> => {
  const run = services.runs.active().find((each) => continuityOf(each).keepsRuns);
  const rows = readRows(run ? services.journal.ofRun(run, to) : []);
  if (!run || !mayHaveActed(services, run, rows)) return {};
  const open = openCalls(rows).map((each) => ({
    ...{ step: each.step, callId: each.call.callId, toolName: each.call.toolName },
    ...(isUndone(services.calls.get(each.call.callId), each) ? { undone: true as const } : {}),
  }));
  return { cut: { run: run.ordinal, open } };
};

const boundsOf = (db: Database, services: RunServices): ExportBounds => {
  const ends = db.get<Omit<ExportBounds, "at" | "cut">>(sql`select
    (select coalesce(max(seq), 0) from journal) as journal,
    (select coalesce(max(ordinal), 0) from runs) as run,
    (select coalesce(max(id), 0) from windows) as window,
    (select coalesce(max(ordinal), 0) from archival) as archival`);
  return { at: services.clock.now(), ...ends, ...cutOf(services, ends.journal) };
};

const leftBehind = (db: Database): ExportedHead["agent"]["left"] =>
  db.get(sql`select
    (select count(*) from events) as events,
    (select count(*) from runs where completed_at is null) as runs,
    (select count(*) from calls where phase <> 'done') as calls,
    (select count(*) from hooks) as hooks,
    (select count(*) from waits where root is not null) as waits,
    (select count(*) from ${spaces} where ${spaces.snapshot} ->> '$.confidential') as compartments`);

/**
 * The ids that rows mention without a name: of authors, sources, spaces and those whom blocks are shared with. A union has
 * five terms at most in a Durable Object.
 */
const mentioned = sql`
  select substr(author, instr(author, ':') + 1) as id from block_versions where author <> 'system'
  union select json_extract(source, '$.authorId') from archival
  union select json_extract(source, '$.spaceId') from archival
  union select partner_entity_id from blocks
  union select id from (
    select grantee_id as id from shares union select owner_id from shared_blocks
    union select id from spaces union select id from known_names)`;

/** The names that the agent's spaces and its own past tell. */
const namesHeld = sql`
  select id, name from known_names
  union all select owner_id, owner_name from shared_blocks
  union all select json_extract(member.value, '$.id'), json_extract(member.value, '$.name')
    from spaces, json_each(spaces.snapshot, '$.members') as member
  union all select id, json_extract(snapshot, '$.name') from spaces`;

/** The names of the ids that rows mention. The directory is asked for those that no space tells. */
const namesFor = async (
  db: Database,
  workspace: Pick<WorkspaceRpc, "entity">,
  self: string,
): Promise<RowOf<"name">[]> => {
  const names = new Map(db.all<RowOf<"name">>(namesHeld).map(({ id, name }) => [id, name]));
  const wanted = db
    .all<{ id: string }>(sql`select id from (${mentioned}) where id <> ${self} order by id limit ${maxExportedNames}`)
    .map(({ id }) => id);
  const unknown = wanted.filter((id) => !names.has(id) && id.startsWith("ent_")).slice(0, maxNamesAsked);
  for (const id of unknown) {
    const answer = await workspace.entity(id).catch((error: unknown) => {
      log.warn("export.name-unknown", { reason: String(error) });
      return undefined;
    });
    if (answer?.ok) names.set(id, answer.value.name);
  }
  return wanted.flatMap((id) => {
    const name = names.get(id);
    return name === undefined ? [] : [{ id, name }];
  });
};

/** The head and the names. */
const firstPage = async (db: Database, services: RunServices): Promise<ExportPage> => {
  const { identity, env } = services;
  const { id, workspaceId, config, createdAt, updatedAt, activeSpaceId } = identity.get();
  const correction = correctionOf(services);
  const bounds = boundsOf(db, services);
  const head = lineOf({
    kind: "agent",
    format: exportFormat,
    version: exportVersion,
    exportedAt: isoTime(bounds.at),
    agent: {
      id,
      config,
      createdAt: isoTime(createdAt),
      updatedAt: isoTime(updatedAt),
      activeSpaceId,
      ...(correction === null ? {} : { correction }),
      left: leftBehind(db),
    },
  });
  const names = await namesFor(db, env.WORKSPACE.getByName(workspaceId), id);
  return {
    // Names go with who is erased. Of words in messages they are older.
    text: head + names.map((row) => lineOf({ kind: "name", row: services.redactions.clean(row, 0) })).join(""),
    next: { bounds, kind: "memory", after: null, lines: 1 + names.length },
  };
};

/** Folds the next block if it was changed much since its snapshot: then it fits into one page. */
const foldNext = async (db: Database, { blocks }: RunServices, after: After): Promise<void> => {
  const next = db.get<{ label: string; tailBytes: number } | undefined>(sql`select label,
    (select coalesce(sum(length("update")), 0) from block_versions where block_id = blocks.id) as tailBytes
    from blocks where id > ${after ?? 0} order by id limit 1`);
  if (next && next.tailBytes > exportTailBytes) await blocks.fold(next.label);
};

/** A row without the words that are being taken out. Documents stay, with whom they are shared, and what is older. */
const cleaned = ({ redactions }: RunServices, kind: RowKind, row: object): object => {
  if (kind === "block" || kind === "share" || kind === "archival") return row;
  const { id, key, updatedAt, completedAt, createdAt }: Record<string, unknown> = { ...row };
  const writtenAt = Date.parse(String(updatedAt ?? completedAt ?? createdAt)) || undefined;
  const left: Record<string, unknown> = redactions.clean({ ...row }, writtenAt);
  const label = (before: unknown, now: unknown) => (now === before ? now : asLabel(String(now)));
  return { ...left, id: label(id, left.id), key: label(key, left.key) };
};

/** The lines from a place on; without one, the first. */
export const exportPage = async (
  db: Database,
  services: RunServices,
  from: ExportPlace | null,
): Promise<ExportPage> => {
  if (!from) return firstPage(db, services);
  let { kind, after, lines } = from;
  let text = "";
  while (text.length < exportPageCharacters) {
    if (kind === "block") await foldNext(db, services, after);
    const store: KindStore<RowKind> = kindStores[kind];
    const rows = store.read(db, after, from.bounds);
    for (const { row, place } of rows) {
      if (text.length >= exportPageCharacters) break;
      text += `${JSON.stringify({ kind, row: cleaned(services, kind, row) })}\n`;
      lines += 1;
      after = place;
    }
    if (rows.length > 0) continue;
    const next = rowKinds[rowKinds.indexOf(kind) + 1];
    if (!next) return { text: text + lineOf({ kind: "end", lines }), next: null };
    kind = next;
    after = null;
  }
  return { text, next: { bounds: from.bounds, kind, after, lines } };
};
