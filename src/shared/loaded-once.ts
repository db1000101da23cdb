const loads: (() => Promise<unknown>)[] = [];

/**
 * Loads a module when it is first used. The module is kept, and not its promise: no object waits for what another began
 * to load.
 */
export const loadedOnce = <Module>(load: () => Promise<Module>): (() => Promise<Module>) => {
  let loaded: Module | undefined;
  const get = async (): Promise<Module> => {
    loaded ??= await load();
    return loaded;
  };
  loads.push(get);
  return get;
};

/** Loads all of them. For tests: Vitest has an object wait for what another loads, and workerd refuses it to go on. */
export const loadAll = async (): Promise<void> => {
  for (const load of loads) await load();
};
