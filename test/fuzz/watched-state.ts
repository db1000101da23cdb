import { runInDurableObject } from "cloudflare:test";
import type { Stage } from "./stage.ts";

/**
 * What the objects of a stage hold, told cheaply: an object in which nothing was written since it was looked at last
 * still holds the same, and is not read again.
 */
export class WatchedState {
  readonly #stage: Stage;
  readonly #dirty = new Set<string>();
  #known = new Map<string, Map<string, string>>();

  private constructor(stage: Stage) {
    this.#stage = stage;
  }

  static async of(stage: Stage): Promise<WatchedState> {
    const state = new WatchedState(stage);
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
      const now = await rowsOf(object);
      const before = this.#known.get(object.name);
      for (const table of new Set([...now.keys(), ...(before?.keys() ?? [])])) {
        if (before && before.get(table) !== now.get(table)) differences.push(`${object.name}.${table}`);
      }
      this.#known = new Map(this.#known).set(object.name, now);
    }
    return differences;
  }
}

const rowsOf = ({ stub, tables }: Stage["objects"][number]): Promise<Map<string, string>> =>
  runInDurableObject(stub, (_, { storage: { sql } }) => {
    const there = new Set(
      sql
        .exec<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table'")
        .toArray()
        .map(({ name }) => name),
    );
    const read = Object.entries(tables).filter(([table]) => there.has(table));
    return new Map(
      read.map(([table, columns]) => [table, JSON.stringify([...sql.exec(`SELECT ${columns} FROM ${table}`).raw()])]),
    );
  });
