import { createHash } from "node:crypto";
import { existsSync, globSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dirname, "..");
const dist = join(root, "dist/web");
const stamp = join(root, "dist/web.stamp");

/** Builds the web page into `dist/web`, unless what is there was built from the same sources. Answers whether it built. */
export const buildPage = async (): Promise<boolean> => {
  const now = fingerprint();
  if (existsSync(join(dist, "index.html")) && existsSync(stamp) && readFileSync(stamp, "utf8") === now) return false;
  const { build } = await import("vite");
  await build({ configFile: join(root, "src/web/vite.config.ts"), logLevel: "error" });
  writeFileSync(stamp, now);
  return true;
};

const fingerprint = (): string => {
  const hash = createHash("sha256");
  const files = globSync(["src/{web,client,protocol,shared}/**/*.*", "package-lock.json"], { cwd: root }).sort();
  for (const file of files) hash.update(file).update(readFileSync(join(root, file)));
  return hash.digest("hex");
};
