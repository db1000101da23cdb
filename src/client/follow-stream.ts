import { closeCodes } from "../protocol/events.ts";
import { ColloquyError } from "../shared/errors.ts";
import { type Connection, type ConnectionTimings, connect, defaultTimings } from "./connection.ts";
import type { Credentials } from "./credentials.ts";
import type { ClosedReason, ConnectionState } from "./space-state.ts";

/**
 * One stream of Colloquy, followed until it ends for good.
 *
 * Invariants
 * 1. Once it is closed, whyever, nothing is told any more.
 * 2. An expired token is refreshed before the next opening; where it cannot be, that is the end.
 */
export type FollowedStream = {
  credentials: Credentials;
  /** Where to connect, with the newest token and cursor. */
  address(): string;
  /** A request for the same thing: a socket that does not open says not why, a request does. */
  probe(): Promise<unknown>;
  text(text: string): void;
  /** All that becomes of the line, but that it is open, which the first frame tells. */
  connection(state: ConnectionState): void;
};

export type Following = Pick<Connection, "send"> & { end(reason: ClosedReason): void };

export const followStream = (stream: FollowedStream, timings: Partial<ConnectionTimings> = {}): Following => {
  /** The token that the last opening carried, and the one that a socket was closed for. */
  let usedToken = "";
  let expiredToken: string | null = null;
  let isClosed = false;

  const end = (reason: ClosedReason): void => {
    if (isClosed) return;
    isClosed = true;
    connection.close();
    stream.connection({ status: "closed", reason });
  };

  const address = async ({ failed }: { failed: boolean }): Promise<string | null> => {
    if (expiredToken !== null && (await stream.credentials.refresh(expiredToken)) === null) {
      end("signed_out");
      return null;
    }
    expiredToken = null;
    const ending = failed ? await refusal(() => stream.probe()) : null;
    if (ending !== null) {
      end(ending);
      return null;
    }
    usedToken = stream.credentials.token();
    return stream.address();
  };

  const connection: Connection = connect(
    {
      address,
      text: (text) => stream.text(text),
      reconnects: (code) => endings.get(code) === undefined,
      down: ({ code, attempt }) => {
        if (code === closeCodes.tokenExpired) expiredToken = usedToken;
        const ending = endings.get(code);
        if (ending) return end(ending);
        if (isClosed) return;
        const offline = globalThis.navigator?.onLine === false;
        stream.connection(offline ? { status: "offline" } : { status: "reconnecting", attempt });
      },
    },
    { ...defaultTimings, ...timings },
  );
  return { send: (text) => connection.send(text), end };
};

const endings = new Map<number, "removed" | "deleted">([
  [closeCodes.removed, "removed"],
  [closeCodes.spaceDeleted, "deleted"],
]);

const refusal = async (request: () => Promise<unknown>): Promise<"removed" | "signed_out" | null> => {
  try {
    await request();
  } catch (error) {
    if (!(error instanceof ColloquyError)) throw error;
    if (error.code === "not_found" || error.code === "forbidden") return "removed";
    if (error.code === "unauthorized" || error.code === "token_expired") return "signed_out";
  }
  return null; // it can be reached, or nothing can: the socket tries again either way
};
