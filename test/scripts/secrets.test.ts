import { spawn } from "node:child_process";
import { createECDH } from "node:crypto";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, expect, test } from "vitest";
import { nextStep, orphanedBy, type Prints, readVariables, writeVariable } from "../../scripts/secrets.ts";
import { vapidKeysOf } from "../../src/auth/vapid.ts";
import { parseRing, printOf, type RingEnv } from "../../src/shared/secret-ring.ts";

const root = resolve(import.meta.dirname, "../..");
const folder = mkdtempSync(join(tmpdir(), "secrets-"));
afterAll(() => rmSync(folder, { recursive: true }));

const [a, b, c] = ["a", "b", "c"].map((letter) => letter.repeat(32)) as [string, string, string];
const told = (env: RingEnv): Prints => {
  const { secrets, ids } = parseRing(env);
  return { ring: secrets.map(({ print }) => print), ids: ids.print };
};
const fresh = { name: "2026-11-24", secret: c };
const value = (step: ReturnType<typeof nextStep>): string => ("value" in step ? step.value : step.step);

test("[L5] a rotation's next step follows from the file and the deployment, wherever it was cut", () => {
  const before = { SIGNING_SECRET: a };
  const added = { ...before, SIGNING_SECRETS: value(nextStep(before, told(before), fresh)) };
  expect(added.SIGNING_SECRETS).toBe(`2026-11-24:${c}`);
  expect(nextStep(added, told(before), fresh)).toEqual({ step: "put" });
  const reseal = nextStep(added, told(added), fresh);
  expect(reseal).toMatchObject({ step: "reseal", leaving: [printOf(a)] });
  const ended = { ...before, SIGNING_SECRETS: value(reseal) };
  expect(nextStep(ended, told(added), fresh)).toEqual({ step: "put" });
  expect(told(ended)).toEqual({ ring: [printOf(c)], ids: printOf(a) });
  const again = { ...before, SIGNING_SECRETS: value(nextStep(ended, told(ended), { ...fresh, secret: b })) };
  expect(told(again)).toEqual({ ring: [printOf(b), printOf(c)], ids: printOf(a) });
  const last = { ...before, SIGNING_SECRETS: value(nextStep(again, told(again), fresh)) };
  expect(told(last)).toEqual({ ring: [printOf(b)], ids: printOf(a) });
});

test("[L5] who does not know SIGNING_SECRET rotates too, and who lacks a newer one is told", () => {
  const live = told({ SIGNING_SECRET: a });
  const added = { SIGNING_SECRETS: value(nextStep({}, live, fresh)) };
  const both = told({ SIGNING_SECRET: a, ...added });
  expect(value(nextStep(added, both, fresh))).toBe(`2026-11-24:${c},ids:SIGNING_SECRET`);
  expect(nextStep({}, both, fresh)).toMatchObject({ step: "refuse", why: expect.stringContaining(printOf(c)) });
});

test("[L5] a rotation refuses a file that would orphan ids or seals, as a deployment does", () => {
  const live = told({ SIGNING_SECRET: a });
  for (const env of [{ SIGNING_SECRET: b }, { SIGNING_SECRET: a, SIGNING_SECRETS: `two:${b},ids:SIGNING_SECRET` }]) {
    const why = orphanedBy(env, live, { hasOldest: true, isDone: true });
    expect(nextStep(env, live, fresh)).toEqual({ step: "refuse", why: why ?? "it would not go out" });
  }
});

test("[L5] a rotation refuses a file whose empty SIGNING_SECRET would be uploaded with it", () => {
  const empty = nextStep({ SIGNING_SECRET: "" }, told({ SIGNING_SECRET: a }), fresh);
  expect(empty).toEqual({ step: "refuse", why: expect.stringContaining("holds no secret") });
});

test("[L5] the docs give each option of npm run rotate behind --, which npm passes on", () => {
  const said = readFileSync(join(root, "docs/operating.md"), "utf8").match(/.{11}--(finish|workspaces|url)\b/g) ?? [];
  expect(said).toHaveLength(3);
  for (const each of said) expect(each).toMatch(/(`|rotate )-- --\w+$/);
});

test("[L5] secrets that would orphan ids or seals do not go out, others do", () => {
  const live = told({ SIGNING_SECRET: a, SIGNING_SECRETS: `two:${b}` });
  const verdict = (env: RingEnv, how = {}) => orphanedBy(env, live, { hasOldest: true, isDone: false, ...how });
  expect(verdict({ SIGNING_SECRET: a, SIGNING_SECRETS: `three:${c},two:${b}` })).toBeUndefined();
  expect(verdict({ SIGNING_SECRETS: `two:${b}` })).toBeUndefined();
  expect(verdict({})).toBeUndefined();
  expect(verdict({ SIGNING_SECRET: c })).toContain(`Every id there was made with the secret of print ${printOf(a)}`);
  expect(verdict({ SIGNING_SECRETS: `two:${b}` }, { hasOldest: false })).toContain("Every id there");
  expect(verdict({ SIGNING_SECRET: a })).toContain(`sealed by the secret of print ${printOf(b)}`);
  const ended = { SIGNING_SECRETS: `two:${b},ids:SIGNING_SECRET` };
  expect(verdict(ended)).toContain(`sealed by the secret of print ${printOf(a)}`);
  expect(verdict(ended, { isDone: true })).toBeUndefined();
  expect(verdict({ SIGNING_SECRET: a }, { isDone: true })).toContain(printOf(b));
  const unknown = (env: RingEnv) => orphanedBy(env, undefined, { hasOldest: true, isDone: false });
  expect(unknown({ SIGNING_SECRET: a })).toContain("tells no prints");
  expect(unknown({})).toBeUndefined();
});

test("[L5] a variable is set in one step, and the file stays its owner's", () => {
  const path = join(folder, ".vars");
  writeFileSync(path, "ADMIN_KEY=x\nSIGNING_SECRETS='old'\nENVIRONMENT=development\n");
  writeVariable(path, "SIGNING_SECRETS", `n:${c}`);
  expect(readVariables(path)).toEqual({ ADMIN_KEY: "x", ENVIRONMENT: "development", SIGNING_SECRETS: `n:${c}` });
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test("[L5] an empty variable takes nothing of the next line, whatever blanks follow it", () => {
  const path = join(folder, ".blank.vars");
  writeFileSync(path, `ADMIN_KEY= \t\r\nSIGNING_SECRET=${a} \n`);
  expect(readVariables(path)).toEqual({ ADMIN_KEY: "", SIGNING_SECRET: a });
});

/** Runs `npm run deploy`'s script with a wrangler that knows these secrets, and notes what it is asked. */
const deploy = async (secrets: string[], file: string, live: Prints, listed: string[] = [], shell = {}, ends = ":") => {
  const wrangler = join(folder, "wrangler");
  const asked = join(folder, "asked");
  writeFileSync(asked, "");
  const list = JSON.stringify(secrets.map((name) => ({ name })));
  writeFileSync(
    wrangler,
    `#!/bin/sh\necho "$@" >> ${asked}\n[ "$1" = secret ] && echo '${list}'\n[ -f "$3" ] && cat "$3" >> ${asked}\n[ "$1" = deploy ] && ${ends}\nexit 0\n`,
  );
  chmodSync(wrangler, 0o700);
  const path = join(folder, ".prod.vars");
  writeFileSync(path, file);
  // It lists these workspaces, and knows none of them.
  const server = createServer(({ url: asked = "" }, response) => {
    const list = { items: listed.map((id) => ({ id })), nextCursor: null };
    if (asked.startsWith("/v1/operator/workspaces/")) response.writeHead(404);
    response.end(JSON.stringify(asked.startsWith("/v1/operator") ? list : { ok: true, secrets: live }));
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const address = server.address();
  const url = typeof address === "object" && address ? `http://127.0.0.1:${address.port}` : "";
  const env = { ...process.env, ...shell, WRANGLER: wrangler, SECRETS_FILE: path, COLLOQUY_URL: url };
  const child = spawn(process.execPath, [join(root, "scripts/deploy.ts")], { cwd: root, env });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (said += text));
  const status = await new Promise((ended) => child.on("close", ended));
  server.close();
  return { status, said, asked: readFileSync(asked, "utf8").trim().split("\n") };
};

test("[L5] npm run deploy sees a SIGNING_SECRET that was put by hand", async () => {
  const all = ["ADMIN_KEY", "SIGNING_SECRET"];
  const lost = await deploy(all, "ADMIN_KEY=k\n", told({ SIGNING_SECRET: b }), ["wsp_1"]);
  expect(lost).toMatchObject({ status: 1, said: expect.stringContaining("wsp_1"), asked: [expect.any(String)] });
  expect(lost.said).toContain("Put back the one that it had");
});

test("[L5] npm run deploy uploads the secrets that it compared, whatever the shell has", async () => {
  const all = ["ADMIN_KEY", "SIGNING_SECRET", "VAPID_KEYS"];
  const live = told({ SIGNING_SECRET: a });
  const own = await deploy(all, `SIGNING_SECRET=${a}\n`, live, [], { SIGNING_SECRET: c });
  // Of JSON wrangler takes what is there.
  expect([own.status, own.asked.at(-1)]).toEqual([0, JSON.stringify({ SIGNING_SECRET: a })]);
  const key = await deploy(all.slice(1), "ADMIN_KEY=k # the operator's\n", live);
  expect([key.status, key.asked.at(-1)]).toEqual([0, JSON.stringify({ ADMIN_KEY: "k" })]);
});

test("[I7] npm run deploy makes the keys of Web Push where there are none, once", async () => {
  const live = told({ SIGNING_SECRET: a });
  const first = await deploy(["ADMIN_KEY", "SIGNING_SECRET"], "", live);
  const { VAPID_KEYS } = JSON.parse(first.asked.at(-1) ?? "") as Record<string, string>;
  expect(first.status).toBe(0);
  const { publicKey, privateKey } = vapidKeysOf({ VAPID_KEYS });
  const pair = createECDH("prime256v1");
  pair.setPrivateKey(privateKey, "base64url");
  expect(pair.getPublicKey("base64url")).toBe(publicKey);
  const again = await deploy(["ADMIN_KEY", "SIGNING_SECRET", "VAPID_KEYS"], "", live);
  expect(again.asked.join()).not.toContain("secrets-file");
  const own = await deploy(["ADMIN_KEY", "SIGNING_SECRET"], `VAPID_KEYS=${VAPID_KEYS}\n`, live);
  expect(own.asked.at(-1)).toBe(JSON.stringify({ VAPID_KEYS }));
});

test("[L5] npm run deploy that is interrupted leaves no copy of the secrets", async () => {
  const all = ["ADMIN_KEY", "SIGNING_SECRET", "VAPID_KEYS"];
  const cut = await deploy(all, "ADMIN_KEY=k\n", told({ SIGNING_SECRET: a }), [], {}, "kill -INT $PPID && exit 1");
  expect([cut.status, cut.asked.at(-1)]).toEqual([1, JSON.stringify({ ADMIN_KEY: "k" })]);
  expect(readdirSync(folder)).not.toContain(".prod.vars.new");
});

test("[L5] npm run deploy uploads no empty secret in the place of one that is there", async () => {
  const all = ["ADMIN_KEY", "SIGNING_SECRET"];
  const live = told({ SIGNING_SECRET: a, SIGNING_SECRETS: `two:${b}` });
  for (const line of ["ADMIN_KEY=", "SIGNING_SECRET=", "SIGNING_SECRETS=", "SIGNING_SECRETS=ids:SIGNING_SECRET"]) {
    const { status, asked } = await deploy(all, `${line}\n`, live);
    expect([line, status, asked.length]).toEqual([line, 1, 1]);
  }
});

test("[L5] npm run deploy refuses secrets that would orphan what is stored, and uploads nothing", async () => {
  const live = told({ SIGNING_SECRET: a });
  const all = ["ADMIN_KEY", "SIGNING_SECRET"];
  const lost = await deploy(all, `SIGNING_SECRET=${c}\n`, live);
  expect(lost).toMatchObject({
    status: 1,
    said: expect.stringContaining("Every id there was made with"),
    asked: [expect.any(String)],
  });
  const gone = await deploy(["ADMIN_KEY"], "", live);
  expect(gone).toMatchObject({ status: 1, said: expect.stringContaining("a new one would orphan all that is stored") });
  expect(gone.said).not.toContain("openssl");
  expect(await deploy([], "", live)).toMatchObject({ status: 1, said: expect.stringContaining("openssl rand") });
});

/** Runs the last step of a rotation in which the deployment answers a list of workspaces with this status. */
const finish = async (listStatus: number) => {
  const file = join(folder, ".rotated.vars");
  const before = `SIGNING_SECRET=${a}\nSIGNING_SECRETS=n:${b}\n`;
  writeFileSync(file, before);
  const secrets = told({ SIGNING_SECRET: a, SIGNING_SECRETS: `n:${b}` });
  const all = JSON.stringify({ secrets, state: "done", agents: 0, items: [], nextCursor: null });
  const server = createServer(({ url = "" }, answer) =>
    answer.writeHead(url.includes("?") ? listStatus : 200).end(all),
  );
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const asked = ["--url", url, "--secrets", file, "--workspaces", "wsp_1", "--finish"];
  const env = { ...process.env, ADMIN_KEY: "k" };
  const child = spawn(process.execPath, [join(root, "scripts/rotate.ts"), ...asked], { env });
  let said = "";
  child.stdout.on("data", (text) => (said += text));
  const status = await new Promise((ended) => child.on("close", ended));
  server.close();
  return { status, said, isChanged: readFileSync(file, "utf8") !== before };
};

test("[L5] npm run rotate lets no secret leave where the list of workspaces fails", async () => {
  expect(await finish(503)).toMatchObject({ status: 1, isChanged: false });
});

test("[L5] npm run rotate asks for no step after the last, which would begin another rotation", async () => {
  const { said, ...how } = await finish(200);
  expect(how).toEqual({ status: 0, isChanged: true });
  expect(said).not.toContain("Then: npm run rotate");
});
