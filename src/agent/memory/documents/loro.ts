/** The CRDT library: the module itself, once its WebAssembly has been started. */
export type Loro = typeof import("loro-crdt/web");

let loading: Promise<Loro> | undefined;

const load = async (): Promise<Loro> => {
  const [loro, { default: module }] = await Promise.all([
    import("loro-crdt/web"),
    import("loro-crdt/web/loro_wasm_bg.wasm"),
  ]);
  loro.initSync({ module });
  return loro;
};

/** Loads it with the first document: 1.2 MB that nothing pays for until then. Tries again after a failure. */
export const loadLoro = (): Promise<Loro> => {
  loading ??= load().catch((error: unknown) => {
    loading = undefined;
    throw error;
  });
  return loading;
};
