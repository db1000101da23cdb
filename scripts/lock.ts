import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

/**
 * Keeps `package-lock.json` whole for every platform. npm leaves out optional binaries that it could not see where the
 * lock was written. `npm ci` then fails, there or on the platform that needs them (npm/cli#4828). Adds what is missing;
 * `--check` writes nothing and fails instead.
 */
type Entry = { version?: string; optionalDependencies?: Record<string, string> } & Record<string, unknown>;
type Lock = { packages: Record<string, Entry> };

const file = join(resolve(import.meta.dirname, ".."), "package-lock.json");
const lock = JSON.parse(readFileSync(file, "utf8")) as Lock;

/** Where node would look for `name` from `path`: the nearest node_modules first. */
const isLocked = (path: string, name: string): boolean => {
  if (`${path ? `${path}/` : ""}node_modules/${name}` in lock.packages) return true;
  if (path === "") return false;
  return isLocked(path.slice(0, Math.max(0, path.lastIndexOf("/node_modules/"))), name);
};

const missing = Object.entries(lock.packages).flatMap(([path, entry]) =>
  Object.entries(entry.optionalDependencies ?? {})
    .filter(([name]) => !isLocked(path, name))
    .map(([name, version]) => ({ parent: path, name, version })),
);

const systems = ["android", "darwin", "freebsd", "linux", "openharmony", "win32"];
const processors: Record<string, string> = {
  "64": "x64",
  "arm-eabi": "arm",
  "arm-gnueabihf": "arm",
  "arm-musleabihf": "arm",
};

/** The entry of a binary package, read off its name, such as `cli-linux-x64-musl`. */
const binaryEntry = (name: string, version: string, parent: Entry): Entry => {
  const words = name.replace(/^.*?\/|windows/g, (found) => (found === "windows" ? "win32" : "")).split("-");
  const at = words.findIndex((word) => systems.includes(word));
  const rest = words
    .slice(at + 1)
    .join("-")
    .replace(/-msvc$/, "");
  const libc = /-(gnu|musl)$/.exec(rest)?.[1];
  const processor = rest.replace(/-(gnu|musl)$/, "");
  if (at < 0 || !/^\d+\.\d+\.\d+$/.test(version)) throw new Error(`add ${name}@${version} to the lock by hand`);
  return {
    version,
    cpu: [processors[processor] ?? processor],
    ...(parent.dev ? { dev: true } : {}),
    ...(libc ? { libc: [libc === "gnu" ? "glibc" : "musl"] } : {}),
    ...(parent.license ? { license: parent.license } : {}),
    optional: true,
    os: [words[at]],
    ...(parent.engines ? { engines: parent.engines } : {}),
  };
};

if (process.argv.includes("--check")) {
  for (const { name, version } of missing)
    console.error(`package-lock.json lacks ${name}@${version}: node scripts/lock.ts`);
  process.exitCode = missing.length > 0 ? 1 : 0;
} else {
  for (const { parent, name, version } of missing) {
    lock.packages[`node_modules/${name}`] = binaryEntry(name, version, lock.packages[parent] ?? {});
  }
  const sorted = Object.entries(lock.packages).sort(([one], [other]) => (one < other ? -1 : 1));
  lock.packages = Object.fromEntries(sorted);
  writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`);
  console.log(`${missing.length} added`);
}
