/**
 * Group commit: posts that come while another is being stored are stored together. A commit costs the disk the same for
 * one post as for fifty.
 *
 * Invariants
 * 1. A post does not wait while nothing is being stored. Otherwise it waits for one commit.
 * 2. Posts that waited for the same commit go on in the order in which they came, in one turn. SQLite stores the turn's
 *    writes in one commit. Each post is a transaction of its own in it, so a refused one undoes no other.
 */
export const createGroupCommit = (storage: Pick<DurableObjectStorage, "sync">) => {
  let stored: Promise<void> | undefined;

  /** Resolves when all that this turn writes is on disk. */
  const commit = async (): Promise<void> => {
    // If it cannot be stored, the platform resets the object, and every waiting post fails.
    await storage.sync().catch(() => undefined);
    stored = undefined;
  };

  return {
    /** Runs `store` when it is its turn. */
    async join<T>(store: () => T): Promise<T> {
      if (stored !== undefined) await stored;
      const value = store();
      stored ??= commit();
      return value;
    },
  };
};
