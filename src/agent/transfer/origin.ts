import { eq, sql } from "drizzle-orm";
import { z } from "zod";
import type { CarriedName } from "../../protocol/exported-agent.ts";
import type { WorkspaceRpc } from "../../protocol/rpc.ts";
import type { Database } from "../../shared/database.ts";
import { log } from "../../shared/log.ts";
import { maxCarriedNames, maxNamesAsked } from "../bounds.ts";
import { knownNames } from "./schema.ts";

/** The names of who and what an agent's history mentions by id alone, so that it can be read elsewhere. */
const Id = z.object({ id: z.string() });

const mentioning = [
  sql`select distinct substr(author, instr(author, ':') + 1) as id from block_versions where author <> 'system'`,
  sql`select distinct json_extract(source, '$.authorId') as id from archival where json_extract(source, '$.authorId') is not null`,
  sql`select distinct json_extract(source, '$.spaceId') as id from archival where json_extract(source, '$.spaceId') is not null`,
  sql`select agent_id as id from block_shares union select owner_id from shared_blocks union select space_id from block_spaces`,
  sql`select partner_entity_id as id from blocks where partner_entity_id is not null`,
  sql`select id from spaces union select id from known_names`,
];

/** Everybody who wrote in a block or said what was archived, and where. */
const mentioned = (db: Database): string[] => {
  const ids = new Set(mentioning.flatMap((query) => db.all(query).map((row) => Id.parse(row).id)));
  return [...ids].slice(0, maxCarriedNames);
};

const Named = z.object({ id: z.string(), name: z.string() });

/** What its spaces and its own past tell. */
const told = (db: Database): Map<string, string> =>
  new Map(
    db
      .all(
        sql`select id, name from known_names
        union all select owner_id, owner_name from shared_blocks
        union all select json_extract(member.value, '$.id'), json_extract(member.value, '$.name')
          from spaces, json_each(spaces.snapshot, '$.members') as member
        union all select id, json_extract(snapshot, '$.name') from spaces`,
      )
      .map((row) => {
        const { id, name } = Named.parse(row);
        return [id, name];
      }),
  );

const byId = (one: CarriedName, other: CarriedName): number => (one.id < other.id ? -1 : 1);

/** Who is not known from a space is asked for in the directory; who is not there either stays an id. */
export const namesFor = async (
  db: Database,
  workspace: Pick<WorkspaceRpc, "entity">,
  self: string,
): Promise<CarriedName[]> => {
  const known = told(db);
  const wanted = mentioned(db).filter((id) => id !== self);
  const unknown = wanted.filter((id) => !known.has(id) && id.startsWith("ent_")).slice(0, maxNamesAsked);
  for (const id of unknown) {
    const answer = await workspace.entity(id).catch((error: unknown) => {
      log.warn("export.name-unknown", { reason: String(error) });
      return undefined;
    });
    if (answer?.ok) known.set(id, answer.value.name);
  }
  return wanted
    .flatMap((id): CarriedName[] => {
      const name = known.get(id);
      return name === undefined ? [] : [{ id, name }];
    })
    .toSorted(byId);
};

/** Of who is in no space of this agent: what it was called where the agent comes from. */
export const knownName = (db: Database, id: string): string | undefined =>
  db.select().from(knownNames).where(eq(knownNames.id, id)).get()?.name;

/** The same of who made a version of a block, as `human:ent_…` or `agent:ent_…:edit`. */
export const authorNamed = (db: Database, author: string): { authorName?: string } => {
  const name = knownName(db, author.split(":")[1] ?? "");
  return name === undefined ? {} : { authorName: name };
};
