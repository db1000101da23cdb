/** A promise that a test resolves by hand, in place of a sleep. */
export type Gate = {
  /** Resolves when the test opens the gate. */
  readonly opened: Promise<void>;
  /** Resolves when somebody has come to the gate. */
  readonly reached: Promise<void>;
  open(): void;
  reach(): void;
};

const pollMs = 1;

/**
 * Each waiter polls. In workerd a promise that another Durable Object resolves goes on in that object's context, where
 * it may not touch its own.
 */
const until = (condition: () => boolean): Promise<void> =>
  new Promise((resolve) => {
    const look = (): void => {
      if (condition()) resolve();
      else setTimeout(look, pollMs);
    };
    look();
  });

export const createGate = (): Gate => {
  let isOpen = false;
  let isReached = false;
  return {
    get opened() {
      return until(() => isOpen);
    },
    get reached() {
      return until(() => isReached);
    },
    open: () => {
      isOpen = true;
    },
    reach: () => {
      isReached = true;
    },
  };
};
