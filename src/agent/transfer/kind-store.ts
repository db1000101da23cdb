import type { ExportBounds } from "../../protocol/transfer-rpc.ts";
import type { CarriedItem, CarriedList } from "../../protocol/exported-agent.ts";
import type { Database } from "../../shared/database.ts";
import { ColloquyError } from "../../shared/errors.ts";
import type { Ids } from "../../shared/ids.ts";

/** Where a row stands in its list: what is read next comes after it. Empty before the first. */
export type Place = (string | number)[];
export type Read<List extends CarriedList> = { item: CarriedItem<List>; place: Place };

/** As whom items are taken in: ids that lived inside the old agent become such of the new one. */
export type Becoming = { ids: Ids; agentId: string };

/** One list of an exported agent, over the tables that hold it. */
export type ListOf<List extends CarriedList> = {
  /** The next few rows after a place, in order; none at the end. */
  read(db: Database, after: Place, bounds: ExportBounds): Read<List>[];
  /** What takes items in, in a transaction: it answers whether one was new. Nothing is there twice. */
  writer(db: Database, becoming: Becoming): (item: CarriedItem<List>) => boolean;
};

/** What an import refuses: where in the document, and why. */
export const unfit = (path: string, message: string): ColloquyError =>
  new ColloquyError("invalid_request", `In the body: ${path} ${message}.`, { issues: [{ path, message }] });

/** Whether an insert that leaves alone what is there has put something in. */
export const isNew = (inserted: unknown[]): boolean => inserted.length > 0;
