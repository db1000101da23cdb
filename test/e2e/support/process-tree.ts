import { execFileSync } from "node:child_process";

type Process = { pid: number; residentKib: number; command: string };

/** A process and all that it and its children began, as they run now. */
export const processTree = (root: number): Process[] => {
  const all = execFileSync("ps", ["-A", "-o", "pid=,ppid=,rss=,comm="], { encoding: "utf8" })
    .trim()
    .split("\n")
    .map((line) => {
      const [pid = "", parent = "", kib = "", ...command] = line.trim().split(/\s+/);
      return { pid: Number(pid), parent: Number(parent), residentKib: Number(kib), command: command.join(" ") };
    });
  const below = (pid: number): Process[] =>
    all.filter(({ parent }) => parent === pid).flatMap((child) => [child, ...below(child.pid)]);
  return [...all.filter(({ pid }) => pid === root), ...below(root)];
};
