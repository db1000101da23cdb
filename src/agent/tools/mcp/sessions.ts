import type { McpServer } from "../../../protocol/tool.ts";
import type { McpConnection } from "./connection.ts";

/**
 * The connections that are open, one for each server, in memory alone.
 *
 * Invariants
 * 1. A connection is opened when it is first needed, shared while it is used, and closed `mcpIdleMs` after its last
 *    call, or at once if it was opened for a list alone: while one is open, the object cannot sleep.
 * 2. An object that is evicted or crashes loses them, and needs none of them: the next use opens a new one.
 * 3. One whose server was configured anew, or that failed, is used by nobody who comes after.
 */
type Open = {
  name: string;
  address: string;
  connection: Promise<McpConnection>;
  users: number;
  keepMs: number;
  idle?: ReturnType<typeof setTimeout>;
};

/** Another address or other headers are another server. */
export const addressOf = ({ url, headers }: McpServer): string => JSON.stringify([url, headers]);

const close = ({ connection }: Open): void => {
  connection.then(
    (opened) => opened.close(),
    () => undefined,
  );
};

export class McpSessions {
  readonly #connect: (server: McpServer) => Promise<McpConnection>;
  readonly #open = new Map<string, Open>();

  constructor(connect: (server: McpServer) => Promise<McpConnection>) {
    this.#connect = connect;
  }

  /**
   * Hands `work` the server's connection, which is kept for `keepMs` after that. What `work` throws is thrown on, and
   * so is why a connection cannot be opened.
   */
  async use<T>(server: McpServer, keepMs: number, work: (connection: McpConnection) => Promise<T>): Promise<T> {
    const open = this.#of(server);
    open.users += 1;
    open.keepMs = Math.max(open.keepMs, keepMs);
    clearTimeout(open.idle);
    try {
      return await work(await open.connection);
    } finally {
      open.users -= 1;
      const isKept = open.keepMs > 0 && this.#open.get(server.name) === open;
      if (open.users === 0 && isKept) open.idle = setTimeout(() => this.#retire(open), open.keepMs);
      else if (open.users === 0) this.#retire(open);
    }
  }

  drop(name: string): void {
    const open = this.#open.get(name);
    if (open) this.#retire(open);
  }

  dropAll(): void {
    for (const open of [...this.#open.values()]) this.#retire(open);
  }

  /** Nobody uses it from now on; it is closed when those who do are done. */
  #retire(open: Open): void {
    if (this.#open.get(open.name) === open) this.#open.delete(open.name);
    clearTimeout(open.idle);
    if (open.users === 0) close(open);
  }

  #of(server: McpServer): Open {
    const { name } = server;
    const address = addressOf(server);
    const known = this.#open.get(name);
    if (known?.address === address) return known;
    if (known) this.#retire(known);
    const open: Open = { name, address, connection: this.#connect(server), users: 0, keepMs: 0 };
    open.connection.catch(() => this.#retire(open));
    this.#open.set(name, open);
    return open;
  }
}
