import type { SpaceSnapshot } from "../../protocol/rpc.ts";
import type { LogRow } from "../log/log.ts";
import type { MemberRow } from "../members.ts";
import { type SettingsRow, snapshotOf } from "../settings.ts";
import type { SubscriberRow } from "./subscribers.ts";

export type Subscriber = Pick<SubscriberRow, "id" | "kind"> &
  Partial<Pick<SubscriberRow, "compartmentOf" | "endpoint">>;
export type Place = Subscriber & Pick<SubscriberRow, "cursor" | "inside">;

/** The result of one walk along the log for one subscriber. Each kind adds what it tells. */
export type Batch = {
  /** The last event walked, and whether the subscriber was a member there. */
  cursor: number;
  inside: boolean;
  /** The walk ended at the subscriber's own leaving. */
  left: boolean;
  /** Whether there is anything to tell; if not, the cursor moves silently. */
  pending: boolean;
  /** There is much of its kind: the next such one waits, and its cursor is stored together with others. */
  isPaced: boolean;
  /** When the oldest message of it was said, if it has any. ISO 8601. */
  saidAt?: string;
};

/** `deleted`: it tells of the space's end. `whole`: it goes up to the end of what may be told. */
export type Pending<B extends Batch = Batch> = { batch: B; after: number; deleted: boolean; whole: boolean };

/**
 * A kind of those who follow the log: what concerns them, and how they are told. Cursors, order, tries and turns are the
 * same for all kinds (`Delivery`).
 */
export type Follower<B extends Batch = Batch> = {
  /** Whether it, as a member, would be told of this event. */
  concerns(subscriber: Subscriber, row: LogRow): boolean;
  /** Whether this event may wait for the next ones, as far as is decided. */
  isOnlyHeard(subscriber: Subscriber, row: LogRow): boolean;
  /** The place in the log up to which it may be told now. `head`: the log's last. */
  endFor(subscriber: Subscriber, head: number): number;
  /** The next batch. `rows` are the log's next after its place. */
  batch(place: Place, rows: LogRow[]): B;
  /** Whether the batch may wait until others had their turn. */
  waitsItsTurn(batch: B): boolean;
  /** Answers the cursor to which the subscriber has come; throws whatever kept it from coming on. */
  send(subscriber: SubscriberRow, pending: Pending<B>): Promise<number>;
  /** Whether it follows no longer, now that it was told of all before this place. */
  isOver(place: Place): boolean;
  /** The ids of those who follow from the first of these rows on, since one concerns them. In its transaction. */
  concerned?(rows: LogRow[]): string[];
  /** It was told of the space's end. */
  ended(subscriber: SubscriberRow): void;
};

/** The space as a batch tells it. The end of a space has the batch's place as its version. */
export const spaceIn = ({ batch, deleted }: Pending, row: SettingsRow, members: readonly MemberRow[]): SpaceSnapshot =>
  deleted ? { ...snapshotOf({ ...row, version: batch.cursor }, members), deleted: true } : snapshotOf(row, members);
