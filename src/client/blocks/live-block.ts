import { ulid } from "ulid";
import { type BlockDetail, BlockFrame, type EditedBlock } from "../../protocol/block.ts";
import type { BlockOperation } from "../../protocol/block-operation.ts";
import { ColloquyError, type ErrorCode } from "../../shared/errors.ts";
import { type ConnectionTimings, followStream } from "../connection.ts";
import type { Credentials } from "../credentials.ts";
import { createStore, type Store } from "../store.ts";
import { retarget } from "./apply-edit.ts";
import {
  type BlockState,
  initialBlockState,
  type LocalBlockFrame,
  type PendingEdit,
  reduceBlock,
} from "./block-state.ts";

/**
 * One block of a space, followed live and edited at the same time as others edit it.
 *
 * Invariants
 * 1. Edits are sent one at a time, in the order in which they were made. Each names the version that it was made on,
 *    so that the server merges it with later edits of others.
 * 2. An edit without an answer is shown as refused, and is not sent again by itself. A retry sends the same request
 *    under the same key, so that it is stored once.
 */
export type LiveBlock = Store<BlockState> & {
  /**
   * Shows the edit at once, sends it, and returns its key. `onVersion`: the version that the person saw when they
   * began, if it is not the shown one.
   */
  edit(operations: readonly BlockOperation[], onVersion?: number): string;
  /** Sends a refused edit again. */
  retry(key: string): void;
  discard(key: string): void;
  close(): void;
};

export type EditRequest = { operations: readonly BlockOperation[]; onVersion: number };

/** What a live block needs of its client. `by`: this person, as a block's history names them. */
export type BlockAccess = {
  by: string;
  credentials: Credentials;
  streamAddress(): string;
  read(): Promise<BlockDetail>;
  /** The server makes an edit once for each key. */
  edit(request: EditRequest, key: string): Promise<EditedBlock>;
};

/** After these errors it is unknown whether the edit was stored. */
const unknown: readonly ErrorCode[] = ["unavailable", "internal", "idempotency_in_progress"];

const changedMeanwhile = "It was changed or deleted by somebody else before this came.";

/** The request that stores an edit; undefined if one of its items is gone. */
const requestOf = (edit: PendingEdit, block: BlockDetail): EditRequest | undefined => {
  if (edit.onVersion !== null) return { operations: edit.operations, onVersion: edit.onVersion };
  const operations = edit.operations.map((operation, index) => retarget(block.value, operation, edit.seen[index]));
  const found = operations.filter((operation) => operation !== undefined);
  return found.length === operations.length ? { operations: found, onVersion: block.version } : undefined;
};

export const openLiveBlock = (access: BlockAccess, timings: Partial<ConnectionTimings> = {}): LiveBlock => {
  const { update, ...store } = createStore(initialBlockState);
  const apply = (frame: BlockFrame | LocalBlockFrame): void => update((state) => reduceBlock(state, frame));

  const following = followStream(
    {
      credentials: access.credentials,
      schema: BlockFrame,
      address: access.streamAddress,
      probe: access.read,
      frame: apply,
      connection: (connection) => apply({ type: "local.connection", connection }),
    },
    timings,
  );

  /** Requests that may have been stored, by the key of their edit. */
  const sent = new Map<string, EditRequest>();

  const send = async (key: string, request: EditRequest): Promise<void> => {
    apply({ type: "local.sending", key });
    try {
      apply({ type: "local.stored", key, answer: await access.edit(request, key), by: access.by });
      sent.delete(key);
    } catch (error) {
      if (!(error instanceof ColloquyError)) throw error;
      if (unknown.includes(error.code)) sent.set(key, request);
      else sent.delete(key);
      apply({ type: "local.refused", key, code: error.code, message: error.message });
    }
    next();
  };

  const next = (): void => {
    const { block, edits } = store.getSnapshot();
    if (!block || edits.some(({ status }) => status.kind === "sending")) return;
    const edit = edits.find(({ status }) => status.kind === "waiting");
    if (!edit) return;
    const request = sent.get(edit.key) ?? requestOf(edit, block);
    if (request) void send(edit.key, request);
    else {
      apply({ type: "local.refused", key: edit.key, code: "conflict", message: changedMeanwhile });
      next();
    }
  };

  return {
    ...store,
    edit: (operations, onVersion) => {
      const key = ulid();
      apply({ type: "local.edit", key, operations, ...(onVersion === undefined ? {} : { onVersion }) });
      next();
      return key;
    },
    retry: (key) => {
      apply({ type: "local.retry", key });
      next();
    },
    discard: (key) => {
      sent.delete(key);
      apply({ type: "local.discard", key });
    },
    close: () => following.end("closed"),
  };
};
