import type { TestProject } from "vitest/node";

/** How much is fuzzed, and with which seed: of `npm run fuzz`, or of the normal run. Handed to the tests by vitest. */
export type FuzzSettings = { seed: number; inputs: number };

declare module "vitest" {
  interface ProvidedContext {
    fuzz: FuzzSettings;
  }
}

/** The normal run takes always the same inputs, so that it fails for what was changed and for nothing else. */
const usual: FuzzSettings = { seed: 20261122, inputs: 2000 };

/** Vitest's global setup of the actors' tests. */
export default ({ provide }: TestProject): void => {
  const { FUZZ_SEED = usual.seed, FUZZ_INPUTS = usual.inputs } = process.env;
  provide("fuzz", { seed: Number(FUZZ_SEED), inputs: Number(FUZZ_INPUTS) });
};
