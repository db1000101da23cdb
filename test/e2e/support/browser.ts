import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type Browser, chromium, type LaunchOptions } from "playwright-core";

/**
 * A real, headless Chromium with nothing to install by hand. On Linux it is the one in an npm package; elsewhere, or
 * where that cannot start, the installed Chrome.
 */
export const launchBrowser = async (): Promise<Browser> => {
  const failures: unknown[] = [];
  for (const options of [packaged, packagedWithLibraries, installed]) {
    try {
      return await chromium.launch(await options());
    } catch (error) {
      failures.push(error);
    }
  }
  throw new AggregateError(
    failures,
    "no browser can be started: install Chrome, or run where @sparticuz/chromium works",
  );
};

const modules = resolve(import.meta.dirname, "../../../node_modules");
const packageFolder = resolve(fileURLToPath(import.meta.resolve("@sparticuz/chromium")), "../..");
const args = ["--no-sandbox", "--disable-gpu", "--font-render-hinting=none"];

/**
 * Unpacks into the project's own cache, one folder for each version: the package itself would use a shared /tmp. The
 * folder appears whole or not at all, so that an interrupted unpacking leaves nothing broken behind.
 */
const unpack = async (): Promise<string> => {
  const { version } = JSON.parse(readFileSync(join(packageFolder, "package.json"), "utf8")) as { version: string };
  const cache = join(modules, ".cache", `chromium-${version}`);
  if (existsSync(cache)) return cache;
  mkdirSync(join(modules, ".cache"), { recursive: true });
  const unfinished = mkdtempSync(`${cache}.`);
  const archives = ["chromium.br", "fonts.tar.br", "swiftshader.tar.br", "al2023.tar.br"];
  const program = `import { inflate } from "@sparticuz/chromium"; await Promise.all(process.argv.slice(1).map(inflate));`;
  const paths = archives.map((name) => join(packageFolder, "bin", name));
  // In a process of its own: it unpacks into its temporary folder, wherever that is said to be.
  const options = { cwd: modules, env: { ...process.env, TMPDIR: unfinished } };
  await promisify(execFile)(process.execPath, ["--input-type=module", "-e", program, ...paths], options);
  writeFileSync(join(unfinished, "fonts.conf"), fontConfiguration(join(cache, "fonts")));
  try {
    renameSync(unfinished, cache);
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true });
    // Another process was the first to finish, and its folder serves as well.
    if (!existsSync(cache)) throw error;
  }
  return cache;
};

/** Two browsers that one process starts at once share one unpacking. */
let unpacking: Promise<string> | undefined;
const unpacked = (): Promise<string> => (unpacking ??= unpack());

/** The packaged fonts, and the machine's own where there are some. The package's configuration knows only paths of its cloud. */
const fontConfiguration = (folder: string): string => {
  const folders = [folder, "/usr/share/fonts", "/usr/local/share/fonts"].map((path) => `<dir>${path}</dir>`).join("");
  return `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig>${folders}</fontconfig>`;
};

const packaged = async (): Promise<LaunchOptions> => {
  if (process.platform !== "linux") throw new Error("the packaged Chromium is for Linux");
  const folder = await unpacked();
  const env = { ...process.env, FONTCONFIG_FILE: join(folder, "fonts.conf") };
  return { executablePath: join(folder, "chromium"), args, env };
};

/** For a Linux that lacks the few shared libraries that Chromium wants (NSS): those that ship beside it. */
const packagedWithLibraries = async (): Promise<LaunchOptions> => {
  const options = await packaged();
  return { ...options, env: { ...options.env, LD_LIBRARY_PATH: join(await unpacked(), "al2023/lib") } };
};

const installed = (): LaunchOptions => ({ channel: "chrome", args });
