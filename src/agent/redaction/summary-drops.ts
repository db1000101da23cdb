import { and, eq, isNotNull, type SQL, sql } from "drizzle-orm";
import type { Clock } from "../../shared/clock.ts";
import type { Database } from "../../shared/database.ts";
import { summaries, windows } from "../schema.ts";
import type { Row } from "./parts.ts";

const droppedSummary =
  "- (what was before has been left out, since a message that it told of was changed; get_my_runs has it)";

/** Summaries in which a model wrote words that are gone by now, maybe as its own. `summarise`: one is to be made anew. */
export const createSummaryDrops = (db: Database, clock: Clock, summarise: () => void) => {
  const renew = (subject: string, isMeant: SQL): void => {
    const fresh = { text: null, upTo: sql`${summaries.base}`, tryAt: clock.now(), failures: 0, lastError: null };
    const isIts = and(eq(summaries.subject, subject), isNotNull(summaries.text), isMeant);
    if (db.update(summaries).set(fresh).where(isIts).returning({ made: sql`1` }).all().length > 0) summarise();
  };

  /** A space's summary is to be made anew where it was written since then. In a transaction. */
  const renewSummary = (spaceId: string, since: number): void =>
    renew(spaceId, sql`${summaries.updatedAt} >= ${since}`);

  /** Whether a compartment's first window began with a model's words about older runs, of which no row is here. */
  const isFedOf = (since: number): boolean =>
    db.get<{ isIt: 0 | 1 | null }>(sql`select ${since} < (select min(created_at) from journal)
      and (select summary from windows order by id limit 1) like '  | %' as isIt`).isIt === 1;

  /** Drops the space's summary, and those of runs from `knownFrom` on. */
  const dropSummaries = ({ spaceId, since, ...row }: Row): void => {
    if (spaceId !== null) renewSummary(spaceId, since);
    const knownFrom = isFedOf(since) ? 0 : row.knownFrom;
    if (knownFrom === null) return;
    renew("cycles", sql`${summaries.upTo} >= ${knownFrom}`);
    // A cycle's facts were scrubbed line by line. A model's words are dropped whole.
    const isModels = sql`${windows.summary} like '  | %' and ${windows.firstRun} > ${knownFrom}`;
    db.update(windows).set({ summary: droppedSummary }).where(isModels).run();
  };

  return { renewSummary, dropSummaries };
};
