import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** Resident memory in MB, at a time in minutes. */
export type MemorySample = { minute: number; megabytes: number };

/** In MB. Wrangler's front is another process of workerd: it forwards requests, and all that an inspector is told. */
export type Resident = { worker: number; front: number };

/** The resident memory of a group's processes. The worker is the one that can be inspected. */
export const residentMegabytes = async (groupId: number): Promise<Resident> => {
  const { stdout } = await promisify(execFile)("ps", ["-A", "-ww", "-o", "pgid=,rss=,args="]);
  const resident: Resident = { worker: 0, front: 0 };
  for (const line of stdout.split("\n")) {
    const [, group, kilobytes, command = ""] = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? [];
    if (Number(group) !== groupId || !command.includes("workerd serve")) continue;
    resident[command.includes("--inspector-addr") ? "worker" : "front"] += Number(kilobytes) / 1024;
  }
  if (resident.worker === 0) throw new Error("no worker runs that can be inspected");
  return resident;
};

/** The slope of the straight line through the samples, in MB a minute, by least squares. */
export const slope = (samples: MemorySample[]): number => {
  const mean = (values: number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
  const minute = mean(samples.map((sample) => sample.minute));
  const megabytes = mean(samples.map((sample) => sample.megabytes));
  const spread = samples.reduce((sum, sample) => sum + (sample.minute - minute) ** 2, 0);
  const shared = samples.reduce((sum, sample) => sum + (sample.minute - minute) * (sample.megabytes - megabytes), 0);
  return spread === 0 ? 0 : shared / spread;
};
