import type { TestProject } from "vitest/node";

/** How much of the table of faults is run: of `npm run test:faults` all, of the normal run a part of it. */
declare module "vitest" {
  interface ProvidedContext {
    faults: "part" | "all";
  }
}

/** Vitest's global setup of the actors' tests. */
export default ({ provide }: TestProject): void => {
  provide("faults", process.env.FAULTS === "all" ? "all" : "part");
};
