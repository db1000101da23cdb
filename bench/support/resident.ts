import { execFileSync } from "node:child_process";

/** Memory that all workerd processes begun by this one, or by its children, hold: their resident sets, in MiB. */
export const residentMiB = (): number => {
  const processes = execFileSync("ps", ["-A", "-o", "pid=,ppid=,rss=,comm="], { encoding: "utf8" })
    .trim()
    .split("\n")
    .map((line) => /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(.*)$/.exec(line))
    .map((found) => ({ pid: found?.[1], parent: found?.[2], kib: Number(found?.[3]), command: found?.[4] ?? "" }));
  const own = new Set([String(process.pid)]);
  for (let before = 0; before !== own.size; ) {
    before = own.size;
    for (const { pid, parent } of processes) if (pid && parent && own.has(parent)) own.add(pid);
  }
  const workers = processes.filter(({ pid, command }) => pid && own.has(pid) && command.includes("workerd"));
  if (workers.length === 0) throw new Error("no workerd runs");
  return workers.reduce((sum, { kib }) => sum + kib, 0) / 1024;
};
