import type { LoroDoc } from "loro-crdt/web";
import { maxOpenDocuments } from "../../bounds.ts";

/**
 * Documents that are open in memory: a cache of what is stored, least recently used out first.
 *
 * Invariants
 * 1. A document that was changed and whose change was not stored is dropped before anybody reads it.
 */
export class OpenDocuments {
  /** In the order of their use, the latest last. */
  readonly #open = new Map<number, LoroDoc>();

  /** The document of a block, opened by `open` where it is not yet. */
  get(blockId: number, open: () => LoroDoc): LoroDoc {
    const doc = this.#open.get(blockId) ?? open();
    this.#open.delete(blockId);
    this.#open.set(blockId, doc);
    for (const id of this.#open.keys()) {
      if (this.#open.size <= maxOpenDocuments) break;
      this.drop(id);
    }
    return doc;
  }

  drop(blockId: number): void {
    const doc = this.#open.get(blockId);
    this.#open.delete(blockId);
    doc?.free();
  }
}
