/** A value that changes and notifies its listeners. Fits React's `useSyncExternalStore`. */
export type Store<State> = {
  getSnapshot(): State;
  /** Returns the function that removes the listener. */
  subscribe(listener: () => void): () => void;
};

export type WritableStore<State> = Store<State> & {
  /** Sets the next state. Listeners are notified only if it is another one. */
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
