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
  server: McpServer;
  connection: Promise<McpConnection>;
  users: number;
  keepMs: number;
  idle?: ReturnType<typeof setTimeout>;
};

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
      if (open.users === 0 && this.#open.get(server.name) !== open) close(open);
      else if (open.users === 0) open.idle = setTimeout(() => this.drop(server.name, open), open.keepMs);
    }
  }

  /** Nobody uses it from now on; it is closed when those who do are done. `only`: unless another has taken its place. */
  drop(name: string, only?: Open): void {
    const open = this.#open.get(name);
    if (!open || (only && only !== open)) return;
    this.#open.delete(name);
    clearTimeout(open.idle);
    if (open.users === 0) close(open);
  }

  dropAll(): void {
    for (const name of [...this.#open.keys()]) this.drop(name);
  }

  #of(server: McpServer): Open {
    const known = this.#open.get(server.name);
    if (
      known &&
      known.server.url === server.url &&
      JSON.stringify(known.server.headers) === JSON.stringify(server.headers)
    ) {
      return known;
    }
    this.drop(server.name);
    const open: Open = { server, connection: this.#connect(server), users: 0, keepMs: 0 };
    open.connection.catch(() => this.drop(server.name, open));
    this.#open.set(server.name, open);
    return open;
  }
}
