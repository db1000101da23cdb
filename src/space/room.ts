import { ColloquyError } from "../shared/errors.ts";
import { maxDatabaseBytes } from "./bounds.ts";
import type { Parts } from "./parts.ts";

/** Refuses where the log holds all that it can. */
export const checkRoom = ({ databaseBytes }: Pick<Parts, "databaseBytes">): void => {
  if (databaseBytes() <= maxDatabaseBytes) return;
  throw new ColloquyError(
    "limit_reached",
    `This space holds ${maxDatabaseBytes} bytes, the most (maxDatabaseBytes): open a new one`,
  );
};
