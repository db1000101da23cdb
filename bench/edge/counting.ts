import type { ActorNamespace, Env } from "../../src/env/env.ts";
import type { Counts, Kind } from "./counts.ts";

const counts: Counts = { request: {}, read: {}, written: {} };

export const count = (kind: Kind, what: string, by = 1): void => {
  if (by > 0) counts[kind][what] = (counts[kind][what] ?? 0) + by;
};

/** A cursor's figures grow while it is read, so the cursors are kept and asked when the counts are taken. */
const cursors: { what: string; cursor: SqlStorageCursor<Record<string, SqlStorageValue>> }[] = [];

/** Takes the counts since the last call. */
export const takeCounts = (): Counts => {
  for (const { what, cursor } of cursors) {
    count("read", what, cursor.rowsRead);
    count("written", what, cursor.rowsWritten);
  }
  cursors.length = 0;
  const taken = structuredClone(counts);
  for (const kind of ["request", "read", "written"] as const) counts[kind] = {};
  return taken;
};

/** `insert into "messages" …` as `insert messages`. */
const named = (sql: string): string => {
  const [, verb = sql.slice(0, 20)] = /^\s*(\w+)/.exec(sql) ?? [];
  const [, table = ""] = /(?:into|from|update|table|exists)\s+"?(\w+)"?/i.exec(sql) ?? [];
  return `${verb.toLowerCase()} ${table}`.trim();
};

const patched = new WeakSet<object>();

/** Counts the rows of every statement and every alarm that is set. Objects of one worker share their prototypes. */
export const countStatements = (storage: DurableObjectStorage): void => {
  const sql = Object.getPrototypeOf(storage.sql) as SqlStorage;
  if (patched.has(sql)) return;
  patched.add(sql);
  const { exec } = sql;
  sql.exec = function execCounted(this: SqlStorage, query: string, ...bindings: unknown[]) {
    const cursor = exec.call(this, query, ...bindings);
    // The local platform keeps a table of its own in each object, which no deployment has.
    if (!query.includes("__miniflare")) cursors.push({ what: named(query), cursor });
    return cursor;
  } as SqlStorage["exec"];
  const prototype = Object.getPrototypeOf(storage) as DurableObjectStorage;
  const { setAlarm } = prototype;
  prototype.setAlarm = function setAlarmCounted(this: DurableObjectStorage, ...given) {
    count("written", "set alarm");
    return setAlarm.apply(this, given);
  };
};

/** The same bindings, with every call of an actor counted as the request that it is billed as. */
export const counted = <Bindings extends Env>(env: Bindings): Bindings => ({
  ...env,
  WORKSPACE: countedNamespace("workspace", env.WORKSPACE),
  SPACE: countedNamespace("space", env.SPACE),
  AGENT: countedNamespace("agent", env.AGENT),
  PERSON: countedNamespace("person", env.PERSON),
});

const countedNamespace = <Rpc extends object>(name: string, namespace: ActorNamespace<Rpc>): ActorNamespace<Rpc> => ({
  idFromName: (id) => namespace.idFromName(id),
  getByName: (id) =>
    new Proxy(namespace.getByName(id), {
      get: (stub, method) => {
        const call = Reflect.get(stub, method) as unknown;
        if (typeof call !== "function" || typeof method !== "string") return call;
        return (...given: unknown[]): unknown => {
          count("request", `${name}.${method}`);
          return Reflect.apply(call, stub, given);
        };
      },
    }),
});
