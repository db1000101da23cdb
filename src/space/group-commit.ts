/**
 * Has posts that come while another is being stored be stored together: a commit costs the disk the same for one as
 * for fifty (group commit).
 *
 * Invariants
 * 1. Who comes while nothing is being stored does not wait; whoever waits, waits for one commit.
 * 2. Those who waited for the same commit go on in the order in which they came and in one turn, whose writes SQLite
 *    stores in one commit; each is a transaction of its own in it, so that one that is refused undoes no other.
 */
export class GroupCommit {
  readonly #storage: Pick<DurableObjectStorage, "sync">;
  #stored: Promise<void> | undefined;

  constructor(storage: Pick<DurableObjectStorage, "sync">) {
    this.#storage = storage;
  }

  /** Runs `store` when it is its turn. */
  async join<T>(store: () => T): Promise<T> {
    if (this.#stored !== undefined) await this.#stored;
    const value = store();
    this.#stored ??= this.#commit();
    return value;
  }

  /** Resolves when all that this turn writes is on disk. */
  async #commit(): Promise<void> {
    // What cannot be stored has the platform reset the object, with all who wait.
    await this.#storage.sync().catch(() => undefined);
    this.#stored = undefined;
  }
}
