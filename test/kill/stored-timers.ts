import { globSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

/** A due row of an object's alarm, as it lies on the disk. */
export type StoredTimer = { object: string; name: string; dueAt: number };

/**
 * Timers that may be there when all is quiet: usage to tell, a workspace's memory of keys, audit entries and tokens
 * that expire, of a space's sockets and of a person's lines.
 */
const lasting = new Set(["requests", "audit", "sockets", "lines", "usage"]);

/** The timers left over in a house that has been killed: there may be none. */
export const timersLeftOver = (dataDirectory: string): StoredTimer[] =>
  globSync("v3/do/*/*.sqlite", { cwd: dataDirectory })
    .flatMap((file) => timersIn(join(dataDirectory, file)))
    .filter(({ name }) => !lasting.has(name));

const timersIn = (path: string): StoredTimer[] => {
  const db = new DatabaseSync(path);
  try {
    const has = (table: string): boolean =>
      db.prepare("select 1 from sqlite_master where type = 'table' and name = ?").get(table) !== undefined;
    if (!has("timers")) return [];
    // A job that was dropped leaves the timer of jobs behind, which goes off once and finds none.
    const due = has("jobs") ? "where name <> 'jobs' or exists (select 1 from jobs)" : "";
    const rows = db.prepare(`select name, due_at from timers ${due}`).all();
    return rows.map((row) => ({ object: path, name: String(row.name), dueAt: Number(row.due_at) }));
  } finally {
    db.close();
  }
};
