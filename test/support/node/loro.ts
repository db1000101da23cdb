import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import * as loro from "loro-crdt/web";
import type { Loro } from "../../../src/agent/memory/documents/document.ts";

/** The CRDT library outside of workerd, where its WebAssembly is a file. */
export const nodeLoro = (): Loro => {
  const file = createRequire(import.meta.url).resolve("loro-crdt/web/loro_wasm_bg.wasm");
  loro.initSync({ module: readFileSync(file) });
  return loro;
};
