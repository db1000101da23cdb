/** A promise that a test resolves by hand, in place of a sleep. */
export type Gate = {
  /** Resolves when the test opens the gate. */
  readonly opened: Promise<void>;
  /** Resolves when somebody has come to the gate. */
  readonly reached: Promise<void>;
  open(): void;
  reach(): void;
};

export const createGate = (): Gate => {
  const opened = Promise.withResolvers<void>();
  const reached = Promise.withResolvers<void>();
  return { opened: opened.promise, reached: reached.promise, open: opened.resolve, reach: reached.resolve };
};
