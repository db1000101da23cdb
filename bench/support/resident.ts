import { processTree } from "../../test/e2e/support/process-tree.ts";

/** Memory that all workerd processes begun by this one, or by its children, hold: their resident sets, in MiB. */
export const residentMiB = (): number => {
  const workers = processTree(process.pid).filter(({ command }) => command.includes("workerd"));
  if (workers.length === 0) throw new Error("no workerd runs");
  return workers.reduce((sum, { residentKib }) => sum + residentKib, 0) / 1024;
};
