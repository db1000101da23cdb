import { spawnSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { createApi } from "./api.ts";
import { newVapidKeys } from "./keys.ts";
import { buildPage } from "./page.ts";
import { orphanedBy, orphanOf, type Prints, readVariables, resealAll, workspacesOf } from "./secrets.ts";

/**
 * `npm run deploy`: the page and the worker to Cloudflare's edge, once the deployment has the secrets that it needs.
 * Secrets in `.prod.vars` go out with it, if what is stored there can be read by them: COLLOQUY_URL says where to ask.
 */
const root = resolve(import.meta.dirname, "..");
/** Tests put another in its place. */
const wrangler = process.env.WRANGLER ?? join(root, "node_modules/.bin/wrangler");
const secretsFile = resolve(process.env.SECRETS_FILE ?? join(root, ".prod.vars"));
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

/** Asks the running deployment for its secrets' fingerprints, which older releases do not tell. */
const printsAt = async (url: string): Promise<Prints | undefined> => {
  const answer = await fetch(new URL("/healthz", url)).catch((cause) => fail(`${url} cannot be asked: ${cause}`));
  const told: { secrets?: Prints; detail?: string } = await answer.json().catch(() => ({}));
  if (!answer.ok) fail(`${url} answers ${answer.status}: ${told.detail ?? "see its log"}`);
  return told.secrets;
};

/** Whether nothing that is stored needs another secret than the first. */
const isResealed = async (url: string, adminKey: string | undefined): Promise<boolean> => {
  if (adminKey === undefined) return false;
  const operator = createApi(url, adminKey);
  const named = (process.env.WORKSPACES ?? "").split(",").filter((id) => id !== "");
  const workspaces = await workspacesOf(operator, named).catch(() => []);
  return workspaces.length > 0 && (await resealAll(operator, workspaces, { asks: true })).length === 0;
};

const present = presentSecrets();
const own = readVariables(secretsFile);
const missing = needed.filter((name) => !(own[name] ?? present.includes(name)));
const isNew = present.length === 0;
if (missing.length > 0 && (isNew || !missing.includes("SIGNING_SECRET"))) {
  const why = "SIGNING_SECRET must never change afterwards: every id depends on it.";
  fail(
    `These secrets are missing, or empty in ${secretsFile}: ${missing.join(", ")}. Set them, then deploy again:\n${howToSet(missing)}\n${why}`,
  );
}
if (missing.length > 0) {
  fail(`SIGNING_SECRET is missing, or empty in ${secretsFile}, and the deployment has been there before: a new one would orphan all that is stored.
Put back the one that it had: npx wrangler secret put SIGNING_SECRET`);
}
const adminKey = own.ADMIN_KEY ?? process.env.ADMIN_KEY;
if (!isNew && process.env.COLLOQUY_URL && adminKey) {
  const orphan = await orphanOf(createApi(process.env.COLLOQUY_URL, adminKey));
  if (orphan !== undefined) {
    fail(`The deployment does not know its own workspace ${orphan} any more: its SIGNING_SECRET was put by hand, and made none of its ids.
Put back the one that it had: npx wrangler secret put SIGNING_SECRET (a newer one goes into SIGNING_SECRETS: npm run rotate)`);
  }
}
const goesOut = own.SIGNING_SECRET !== undefined || own.SIGNING_SECRETS !== undefined;
if (goesOut && !isNew) {
  const url =
    process.env.COLLOQUY_URL ??
    fail(`Set COLLOQUY_URL to the deployment's address: ${secretsFile} is compared with what it has.`);
  const live = await printsAt(url);
  const done = await isResealed(url, adminKey);
  const why = orphanedBy(own, live, { isDone: done, hasOldest: present.includes("SIGNING_SECRET") });
  if (why) fail(`${secretsFile} would orphan what is stored, or may. ${why}`);
}
// They live with the deployment alone: nothing that is stored needs them, and browsers subscribe anew to others.
const isWithoutPush = !own.VAPID_KEYS && !present.includes("VAPID_KEYS");
if (isWithoutPush) own.VAPID_KEYS = newVapidKeys();
// A test's wrangler uploads no page.
if (process.env.WRANGLER === undefined) await buildPage();
// An interruption ends wrangler. This goes on, and deletes what wrangler was given.
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, () => undefined);
// What was compared: of a file that is no JSON, wrangler takes the shell's values in place of the file's.
const upload = `${secretsFile}.new`;
const takesFile = Object.keys(own).length > 0;
if (takesFile) writeFileSync(upload, JSON.stringify(own), { mode: 0o600 });
process.exitCode =
  spawnSync(wrangler, ["deploy", ...(takesFile ? ["--secrets-file", upload] : [])], {
    cwd: root,
    env,
    stdio: "inherit",
  }).status ?? 1;
rmSync(upload, { force: true });
