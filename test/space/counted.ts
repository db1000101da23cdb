import { runInDurableObject } from "cloudflare:test";
import type { House } from "./fixture.ts";

/** The rows that the space's SQLite reads and writes while `act` runs, as the platform bills them. */
export const counted = async (
  home: House,
  act: () => Promise<unknown>,
): Promise<{ rowsRead: number; rowsWritten: number }> => {
  const cursors: { rowsRead: number; rowsWritten: number }[] = [];
  await runInDurableObject(home.stub, (_, { storage: { sql } }) => {
    const execute = sql.exec.bind(sql);
    const recorded: typeof execute = (query, ...bindings) => {
      const cursor = execute<Record<string, SqlStorageValue>>(query, ...bindings);
      cursors.push(cursor);
      return cursor as ReturnType<typeof execute<never>>;
    };
    Object.defineProperty(sql, "exec", { configurable: true, value: recorded });
  });
  await act();
  return runInDurableObject(home.stub, (_, { storage: { sql } }) => {
    Reflect.deleteProperty(sql, "exec");
    return {
      rowsRead: cursors.reduce((sum, cursor) => sum + cursor.rowsRead, 0),
      rowsWritten: cursors.reduce((sum, cursor) => sum + cursor.rowsWritten, 0),
    };
  });
};
