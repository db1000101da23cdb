import { asc, eq, lt, sql, sum } from "drizzle-orm";
import type { MeterReport } from "../protocol/workspace.ts";
import type { Clock } from "../shared/clock.ts";
import { countOf, type Database } from "../shared/database.ts";
import { gaugeAgeMs, maxMeterGauges, maxMeterSeries } from "./bounds.ts";
import { counters, gauges } from "./schema.ts";

/**
 * One shard of the deployment's figures, in an object of its own. Isolates add to its counters; of each object that has
 * sockets or failing jobs it holds the last word, for a day.
 */
export const createMeters = (db: Database, clock: Clock) => ({
  add({ counts, gauges: figures }: MeterReport): void {
    let room = maxMeterSeries - countOf(db, counters);
    for (const [series, value] of counts) {
      const isKnown = countOf(db, counters, eq(counters.series, series)) > 0;
      if (!isKnown && room <= 0) continue;
      if (!isKnown) room -= 1;
      const set = { value: sql`${counters.value} + ${value}` };
      db.insert(counters).values({ series, value }).onConflictDoUpdate({ target: counters.series, set }).run();
    }
    const at = clock.now();
    for (const [family, object, value] of figures) {
      const set = { value, at };
      db.insert(gauges)
        .values({ family, object, ...set })
        .onConflictDoUpdate({ target: [gauges.family, gauges.object], set })
        .run();
    }
    db.delete(gauges).where(eq(gauges.value, 0)).run();
    const surplus = countOf(db, gauges) - maxMeterGauges;
    if (surplus <= 0) return;
    const oldest = db.select({ at: gauges.at }).from(gauges).orderBy(asc(gauges.at)).limit(1).offset(surplus);
    db.delete(gauges)
      .where(lt(gauges.at, sql`(${oldest})`))
      .run();
  },

  /** Sums by series. */
  all(): Record<string, number> {
    db.delete(gauges)
      .where(lt(gauges.at, clock.now() - gaugeAgeMs))
      .run();
    const total = sum(gauges.value).mapWith(Number);
    const now = db.select({ family: gauges.family, total }).from(gauges).groupBy(gauges.family).all();
    const counted = db.select().from(counters).all();
    return Object.fromEntries([
      ...counted.map(({ series, value }) => [series, value] as const),
      ...now.map(({ family, total }) => [family, total] as const),
    ]);
  },
});
