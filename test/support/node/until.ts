import type { Store } from "../../../src/client/index.ts";

/** Resolves with the first state from now on for which `holds` is true; rejects after `timeoutMs`. */
export const until = <State>(store: Store<State>, holds: (state: State) => boolean, timeoutMs = 5000): Promise<State> =>
  new Promise((resolve, reject) => {
    const check = (): void => {
      const state = store.getSnapshot();
      if (!holds(state)) return;
      finish();
      resolve(state);
    };
    const stop = store.subscribe(check);
    const timer = setTimeout(() => {
      finish();
      reject(new Error(`no such state in ${timeoutMs} ms; the last was ${JSON.stringify(store.getSnapshot())}`));
    }, timeoutMs);
    const finish = (): void => {
      stop();
      clearTimeout(timer);
    };
    check();
  });
