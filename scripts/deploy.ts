import { spawnSync } from "node:child_process";
import { join, resolve } from "node:path";
import { buildPage } from "./page.ts";

/** `npm run deploy`: the page and the worker to Cloudflare's edge, once the deployment has the secrets that it needs. */
const root = resolve(import.meta.dirname, "..");
const wrangler = join(root, "node_modules/.bin/wrangler");
const needed = ["ADMIN_KEY", "SIGNING_SECRET"];
const env = { ...process.env, WRANGLER_SEND_METRICS: "false" };

const fail = (text: string): never => {
  console.error(text);
  process.exit(1);
};

const howToSet = (names: string[]): string =>
  names.map((name) => `  openssl rand -base64 32 | npx wrangler secret put ${name}`).join("\n");

const presentSecrets = (): string[] => {
  const list = spawnSync(wrangler, ["secret", "list", "--format", "json"], { cwd: root, env, encoding: "utf8" });
  const said = `${list.stdout}${list.stderr}`;
  if (list.status === 0) return (JSON.parse(list.stdout) as { name: string }[]).map((secret) => secret.name);
  // The first deployment: there is no worker yet that could have secrets. Setting one creates it.
  if (/not found|does not exist|10007/i.test(said)) return [];
  return fail(`Cloudflare cannot be asked for the secrets (npx wrangler login comes first):\n${said.trim()}`);
};

const present = presentSecrets();
const missing = needed.filter((name) => !present.includes(name));
if (missing.length > 0) {
  const why = "SIGNING_SECRET must never change afterwards: every id and token depends on it.";
  fail(`These secrets are missing: ${missing.join(", ")}. Set them, then deploy again:\n${howToSet(missing)}\n${why}`);
}
await buildPage();
process.exitCode = spawnSync(wrangler, ["deploy"], { cwd: root, env, stdio: "inherit" }).status ?? 1;
