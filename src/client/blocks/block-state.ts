import type { BlockDetail, BlockFrame, EditedBlock, Json } from "../../protocol/block.ts";
import type { BlockOperation } from "../../protocol/block-operation.ts";
import type { ErrorCode } from "../../shared/errors.ts";
import type { ConnectionState } from "../space-state.ts";
import { applyEdit, seenBy } from "./apply-edit.ts";

/**
 * One block as a person sees it: the stored version, and the edits of this person that are not stored yet.
 *
 * Invariants
 * 1. While an edit is being sent, the block's frames are held back. The frame that contains the edit may come before
 *    the edit's answer, and would show the edit twice.
 * 2. `block` never goes back to an earlier version.
 * 3. An edit stays in `edits` until it is stored or discarded, so that nothing that a person wrote is lost.
 */
export type BlockState = {
  block: BlockDetail | null;
  /** The author of the last change since the block was opened: `agent:ent_…`, `human:ent_…`, `system`. */
  changedBy: string | null;
  edits: readonly PendingEdit[];
  held: readonly Told[];
  connection: ConnectionState;
};

export type PendingEdit = {
  key: string;
  operations: readonly BlockOperation[];
  /** For each operation, the item that it changes. */
  seen: readonly (Json | undefined)[];
  /** The version that the edit was made on; null for an edit on top of unsaved edits. */
  onVersion: number | null;
  status: EditStatus;
};

export type EditStatus =
  | { kind: "waiting" }
  | { kind: "sending" }
  | { kind: "refused"; code: ErrorCode; message: string };

/** The block of one frame. */
type Told = { block: BlockDetail; by: string | null };

export type LocalBlockFrame =
  | { type: "local.connection"; connection: ConnectionState }
  | { type: "local.edit"; key: string; operations: readonly BlockOperation[]; onVersion?: number }
  | { type: "local.sending"; key: string }
  | { type: "local.stored"; key: string; answer: EditedBlock; by: string }
  | { type: "local.refused"; key: string; code: ErrorCode; message: string }
  | { type: "local.retry"; key: string }
  | { type: "local.discard"; key: string };

export const initialBlockState: BlockState = {
  block: null,
  changedBy: null,
  edits: [],
  held: [],
  connection: { status: "connecting" },
};

const isRefused = ({ status }: PendingEdit): boolean => status.kind === "refused";

/** The block's value with all edits of this person applied, except refused ones. */
export const shownValue = ({ block, edits }: BlockState): Json => {
  if (!block) return null;
  return edits
    .filter((edit) => !isRefused(edit))
    .reduce((value, { operations }) => applyEdit(block.schema, value, operations), block.value);
};

const take = (state: BlockState, { block, by }: Told): BlockState => {
  if (state.block && block.version < state.block.version) return state;
  return { ...state, block, changedBy: by ?? state.changedBy };
};

const told = (state: BlockState, one: Told): BlockState => {
  const isUnderWay = state.edits.some(({ status }) => status.kind === "sending");
  return isUnderWay && state.block ? { ...state, held: [...state.held, one] } : take(state, one);
};

const release = (state: BlockState): BlockState => state.held.reduce(take, { ...state, held: [] });

const withEdit = (state: BlockState, key: string, change: Partial<PendingEdit>): BlockState => ({
  ...state,
  edits: state.edits.map((edit) => (edit.key === key ? { ...edit, ...change } : edit)),
});

const without = (state: BlockState, key: string): BlockState => ({
  ...state,
  edits: state.edits.filter((edit) => edit.key !== key),
});

const edited = (state: BlockState, frame: Extract<LocalBlockFrame, { type: "local.edit" }>): BlockState => {
  const { block } = state;
  if (!block) return state;
  const { key, operations } = frame;
  const value = shownValue(state);
  const isOnStored = state.edits.every(isRefused);
  const edit: PendingEdit = {
    key,
    operations,
    seen: operations.map((operation) => seenBy(value, operation)),
    onVersion: frame.onVersion ?? (isOnStored ? block.version : null),
    status: { kind: "waiting" },
  };
  return { ...state, edits: [...state.edits, edit] };
};

export const reduceBlock = (state: BlockState, frame: BlockFrame | LocalBlockFrame): BlockState => {
  switch (frame.type) {
    case "welcome":
      return told({ ...state, connection: { status: "open" } }, { block: frame.block, by: null });
    case "block.changed":
      return told(state, { block: frame.block, by: frame.by });
    case "block.deleted":
    case "error":
      return state;
    case "local.connection":
      return { ...state, connection: frame.connection };
    case "local.edit":
      return edited(state, frame);
    case "local.sending":
      return withEdit(state, frame.key, { status: { kind: "sending" } });
    case "local.stored": {
      const stored = without(state, frame.key);
      if (!stored.block) return stored;
      const { rendered, value, version } = frame.answer;
      return release(take(stored, { block: { ...stored.block, rendered, value, version }, by: frame.by }));
    }
    case "local.refused": {
      const { key, code, message } = frame;
      return release(withEdit(state, key, { status: { kind: "refused", code, message } }));
    }
    case "local.retry":
      // The edit applies to the shown value: its old version may be gone.
      return withEdit(state, frame.key, { status: { kind: "waiting" }, onVersion: null });
    case "local.discard":
      return without(state, frame.key);
  }
};
