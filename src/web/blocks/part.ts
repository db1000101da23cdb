import type { BlockOperation, Json, SpaceState } from "../../client/index.ts";
import type { May } from "./may.ts";

/** An operation as its view makes it: which section it is of, the block knows. */
type WithoutSection<One> = One extends unknown ? Omit<One, "section"> : never;

/** A block, or a section of it, as the views of its kinds are given it. */
export type Part<Schema> = {
  schema: Schema;
  value: Json;
  may: May;
  /** What it is, for who cannot see it. */
  name: string;
  space: SpaceState;
  /** The version that is shown; null while an edit of this person is not stored yet. */
  version: number | null;
  /** Whose change came last: `agent:ent_…`. */
  changedBy: string | null;
  onEdit: (operation: WithoutSection<BlockOperation>, onVersion?: number) => void;
};
