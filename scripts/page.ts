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
  await buildServiceWorker(now);
  writeFileSync(stamp, now);
  return true;
};

/** One file without imports, which knows the files of the page: it is built when these are. */
const buildServiceWorker = async (print: string): Promise<void> => {
  const { build } = await import("vite");
  const files = globSync("**/*.{js,css,html,svg,webmanifest}", { cwd: dist }).filter((file) => file !== "index.html");
  await build({
    configFile: false,
    logLevel: "error",
    define: {
      shellFiles: JSON.stringify(files.sort().map((file) => `/${file.replaceAll("\\", "/")}`)),
      shellPrint: JSON.stringify(print.slice(0, 16)),
    },
    build: {
      outDir: dist,
      emptyOutDir: false,
      copyPublicDir: false,
      target: "es2023",
      rolldownOptions: {
        input: join(root, "src/web/service-worker/worker.ts"),
        output: { entryFileNames: "sw.js", format: "iife" },
      },
    },
  });
};

const fingerprint = (): string => {
  const hash = createHash("sha256");
  const files = globSync(["src/{web,client,protocol,shared}/**/*.*", "package-lock.json"], { cwd: root }).sort();
  for (const file of files) hash.update(file).update(readFileSync(join(root, file)));
  return hash.digest("hex");
};
