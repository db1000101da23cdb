import { spawnSync } from "node:child_process";
import { existsSync, globSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { isDeepStrictEqual } from "node:util";

/**
 * `npm run migrations` writes what each actor's schema needs beyond its history. `--check` writes nothing. It fails if
 * something would be written, or if a history is out of order (the migrator would skip one silently). `newest.sql`
 * beside each history holds the tables that it ends in, for a new object.
 */
const root = resolve(import.meta.dirname, "..");
const actors = ["workspace", "space", "agent", "person", "endpoint"];

type Journal = { entries: { idx: number; when: number; tag: string }[] };

const generate = (actor: string): boolean => {
  const run = spawnSync(join(root, "node_modules/.bin/drizzle-kit"), ["generate"], {
    cwd: root,
    stdio: "inherit",
    env: { ...process.env, ACTOR: actor },
  });
  return run.status === 0;
};

const faultsOf = async (actor: string): Promise<string[]> => {
  const folder = join(root, "migrations", actor);
  if (!existsSync(join(folder, "meta/_journal.json"))) return ["has no migrations: npm run migrations"];
  const { entries } = JSON.parse(readFileSync(join(folder, "meta/_journal.json"), "utf8")) as Journal;
  const faults: string[] = [];
  entries.forEach((entry, index) => {
    const before = entries[index - 1];
    if (before && entry.when <= before.when) faults.push(`${entry.tag} is not later than ${before.tag}`);
    if (!existsSync(join(folder, `${entry.tag}.sql`))) faults.push(`${entry.tag}.sql is missing`);
  });
  const last = String(entries.at(-1)?.idx ?? 0).padStart(4, "0");
  const applied = tablesOf(JSON.parse(readFileSync(join(folder, `meta/${last}_snapshot.json`), "utf8")));
  const { generateSQLiteDrizzleJson } = await import("drizzle-kit/api");
  const schemas = globSync(`src/${actor}/**/schema.ts`, { cwd: root }).map((file) => import(join(root, file)));
  const schema = Object.assign({}, ...(await Promise.all(schemas))) as Record<string, unknown>;
  // A round trip through JSON, as the snapshot made.
  const wanted = tablesOf(JSON.parse(JSON.stringify(await generateSQLiteDrizzleJson(schema))));
  if (!isDeepStrictEqual(applied, wanted)) faults.push("differs from its schema: npm run migrations");
  const newest = existsSync(newestFile(actor)) ? readFileSync(newestFile(actor), "utf8") : "";
  if (newest !== newestOf(actor)) faults.push("has another newest.sql: npm run migrations");
  return faults;
};

const newestFile = (actor: string): string => join(root, "migrations", actor, "newest.sql");

/** What a history ends in, as SQL: the tables of a new object, and that it has the newest migration. */
const newestOf = (actor: string): string => {
  const folder = join(root, "migrations", actor);
  const { entries } = JSON.parse(readFileSync(join(folder, "meta/_journal.json"), "utf8")) as Journal;
  const db = new DatabaseSync(":memory:");
  for (const { tag } of entries) db.exec(readFileSync(join(folder, `${tag}.sql`), "utf8"));
  // SQLite's own objects have no SQL, are reserved, or are shadows of a virtual table.
  const made = db
    .prepare(
      `SELECT name, type, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite%'
       AND tbl_name NOT IN (SELECT name FROM pragma_table_list WHERE type = 'shadow') ORDER BY rowid`,
    )
    .all();
  for (const { name, type } of made) {
    if (type !== "table") continue;
    if (db.prepare(`SELECT count(*) AS rows FROM "${name}"`).get()?.rows === 0) continue;
    throw new Error(`migrations/${actor} fill ${name}, which newest.sql cannot`);
  }
  // How a full-text table is set, in words of FTS5. Its version is its own.
  const settings = made.flatMap(({ name, sql }) => {
    if (!/^CREATE VIRTUAL TABLE/.test(String(sql))) return [];
    const rows = db.prepare(`SELECT k, v FROM "${name}_config" WHERE k <> 'version'`).all();
    return rows.map(
      ({ k, v }) => `INSERT INTO \`${name}\` (\`${name}\`, \`rank\`) VALUES ('${k}', ${JSON.stringify(v)})`,
    );
  });
  db.close();
  const journal = "CREATE TABLE __drizzle_migrations (id SERIAL PRIMARY KEY, hash text NOT NULL, created_at numeric)";
  const newest = `INSERT INTO __drizzle_migrations (hash, created_at) VALUES ('', ${entries.at(-1)?.when})`;
  return [journal, newest, ...made.map(({ sql }) => sql), ...settings].map((statement) => `${statement};\n`).join("");
};

const tablesOf = (snapshot: unknown): unknown => (snapshot as { tables: unknown }).tables;

if (process.argv.includes("--check")) {
  for (const actor of actors) {
    for (const fault of await faultsOf(actor)) {
      console.error(`migrations/${actor} ${fault}`);
      process.exitCode = 1;
    }
  }
} else {
  for (const actor of actors) {
    if (generate(actor)) writeFileSync(newestFile(actor), newestOf(actor));
    else process.exitCode = 1;
  }
}
