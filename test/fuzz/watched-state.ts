import { runInDurableObject } from "cloudflare:test";
import type { Stage } from "./stage.ts";

/** What the objects of a stage hold, told cheaply. An object is not read again if nothing was written in it since. */
export class WatchedState {
  readonly #stage: Stage;
  readonly #compared: "told" | "all";
  readonly #dirty = new Set<string>();
  #known = new Map<string, Map<string, string>>();

  private constructor(stage: Stage, compared: "told" | "all") {
    this.#stage = stage;
    this.#compared = compared;
  }

  /** `told`: what a person could tell a change by. `all`: every row of every table, where nothing happens by itself. */
  static async of(stage: Stage, compared: "told" | "all" = "told"): Promise<WatchedState> {
    const state = new WatchedState(stage, compared);
    for (const object of stage.objects) await state.#watch(object);
    await state.look();
    return state;
  }

  async #watch({ name, stub }: Stage["objects"][number]): Promise<void> {
    this.#dirty.add(name);
    await runInDurableObject(stub, (_, { storage: { sql } }) => {
      const execute = sql.exec.bind(sql);
      const noted: typeof execute = (query, ...bindings) => {
        if (!/^\s*select\b/i.test(query)) this.#dirty.add(name);
        return execute(query, ...bindings);
      };
      Object.defineProperty(sql, "exec", { configurable: true, value: noted });
    });
  }

  /** Takes what is there now as what is known. Answers what differs from what was known before. */
  async look(): Promise<string[]> {
    const differences: string[] = [];
    for (const object of this.#stage.objects) {
      if (!this.#dirty.delete(object.name)) continue;
      const now = await rowsOf(object, this.#compared);
      const before = this.#known.get(object.name);
      for (const table of new Set([...now.keys(), ...(before?.keys() ?? [])])) {
        if (before && before.get(table) !== now.get(table)) differences.push(`${object.name}.${table}`);
      }
      this.#known = new Map(this.#known).set(object.name, now);
    }
    return differences;
  }
}

/** SQLite's and the platform's own. `usage` is told once a minute, from rows of agents and spaces that are compared. */
const foreignTable = /^(?:sqlite_|_cf_|usage$)/;

/**
 * A key of a request is taken before it is known whether it is refused: then what would forget it finds nothing. The timer
 * of jobs goes off by itself when there are none left, and those are compared themselves.
 */
const beginnings = "WHERE name NOT IN ('requests', 'jobs')";

const rowsOf = ({ stub, tables }: Stage["objects"][number], compared: "told" | "all"): Promise<Map<string, string>> =>
  runInDurableObject(stub, (_, { storage: { sql } }) => {
    const there = sql
      .exec<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table'")
      .toArray()
      .map(({ name }) => name)
      .filter((name) => !foreignTable.test(name));
    const columnsOf = (table: string): string | undefined => (compared === "all" ? "*" : tables[table]);
    return new Map(
      there.flatMap((table) => {
        const columns = columnsOf(table);
        if (columns === undefined) return [];
        const query = `SELECT ${columns} FROM "${table}" ${table === "timers" ? beginnings : ""}`;
        return [[table, JSON.stringify([...sql.exec(query).raw()])] as const];
      }),
    );
  });
