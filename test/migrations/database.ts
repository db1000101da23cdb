import * as z from "zod";

/** A database as SQL, and back: tables and rows of an actor, without what the platform keeps beside them. */
const Name = z.string();
const isOurs = (name: string): boolean => !name.startsWith("_cf_") && !name.startsWith("sqlite_");

/** Tables of FTS5, and those that it keeps its words in: they follow from the tables that they index. */
const virtualIn = (storage: DurableObjectStorage): string[] =>
  storage.sql
    .exec("SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL TABLE%'")
    .toArray()
    .map(({ name }) => Name.parse(name));

const isShadow = (name: string, virtual: string[]): boolean => virtual.some((each) => name.startsWith(`${each}_`));

const tablesIn = (storage: DurableObjectStorage): string[] => {
  const virtual = virtualIn(storage);
  return storage.sql
    .exec("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid")
    .toArray()
    .map(({ name }) => Name.parse(name))
    .filter((name) => isOurs(name) && !virtual.includes(name) && !isShadow(name, virtual));
};

/** How many rows each table holds. */
export const countsOf = (storage: DurableObjectStorage): Record<string, number> =>
  Object.fromEntries(
    tablesIn(storage).map((table) => [
      table,
      Number(storage.sql.exec(`SELECT count(*) AS rows FROM "${table}"`).one().rows),
    ]),
  );

export const dump = (storage: DurableObjectStorage): string => {
  const made = storage.sql
    .exec("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid")
    .toArray()
    .filter(({ name }) => isOurs(Name.parse(name)) && !isShadow(Name.parse(name), virtualIn(storage)))
    .map(({ sql }) => `${Name.parse(sql)};`);
  const rows = tablesIn(storage).flatMap((table) => {
    const columns = storage.sql
      .exec(`SELECT name FROM pragma_table_info('${table}')`)
      .toArray()
      .map(({ name }) => `"${Name.parse(name)}"`);
    const values = columns.map((column) => `quote(${column})`).join(` || ', ' || `);
    return storage.sql
      .exec(`SELECT ${values} AS quoted FROM "${table}"`)
      .toArray()
      .map(({ quoted }) => `INSERT INTO "${table}" (${columns.join(", ")}) VALUES (${Name.parse(quoted)});`);
  });
  return `${[...made, ...rows].join("\n")}\n`;
};
