/** A value that changes and tells whoever listens. Fits React's `useSyncExternalStore` as it is. */
export type Store<State> = {
  getSnapshot(): State;
  /** Answers how to stop listening. */
  subscribe(listener: () => void): () => void;
};

export type WritableStore<State> = Store<State> & {
  /** Sets the next state; listeners hear of it only where it is another one. */
  update(next: (state: State) => State): void;
};

export const createStore = <State>(initial: State): WritableStore<State> => {
  let state = initial;
  const listeners = new Set<() => void>();
  return {
    getSnapshot: () => state,
    subscribe: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    update: (next) => {
      const following = next(state);
      if (following === state) return;
      state = following;
      for (const listener of [...listeners]) listener();
    },
  };
};
