/**
 * Loads a module when it is first used. The module is kept, and not its promise: no object waits for what another began
 * to load.
 */
export const loadedOnce = <Module>(load: () => Promise<Module>): (() => Promise<Module>) => {
  let loaded: Module | undefined;
  return async () => {
    loaded ??= await load();
    return loaded;
  };
};
