import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** Resident memory in MB, at a time in minutes. */
export type MemorySample = { minute: number; megabytes: number };

/** What the workerd processes of a group hold together, in MB. */
export const workerdMegabytes = async (groupId: number): Promise<number> => {
  const { stdout } = await promisify(execFile)("ps", ["-A", "-o", "pgid=,rss=,comm="]);
  const kilobytes = stdout
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter(([group, , command = ""]) => Number(group) === groupId && command.includes("workerd"))
    .map(([, rss]) => Number(rss));
  return kilobytes.reduce((sum, each) => sum + each, 0) / 1024;
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
