import { spawn } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { networkInterfaces, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, expect, onTestFinished, test, vi } from "vitest";
import { createApi } from "../../scripts/api.ts";
import { seedDemo } from "../../scripts/demo.ts";
import { ensureKeys } from "../../scripts/keys.ts";
import { readVariables } from "../../scripts/secrets.ts";
import { freePort, isPortFree } from "../../scripts/server.ts";
import { vapidKeysOf } from "../../src/auth/vapid.ts";
import { houseForFile } from "./support/for-file.ts";
import { processTree } from "./support/process-tree.ts";

/** The parts of `npm start`: keys, the demo, and a server that ends with its starter and is open to this machine only. */
const folder = mkdtempSync(join(tmpdir(), "start-"));
afterAll(() => rmSync(folder, { recursive: true }));
const house = await houseForFile();

test("keys are random, written once, and readable by their owner only", () => {
  const path = join(folder, ".dev.vars");
  const first = ensureKeys(path);
  expect(first.written).toBe(true);
  expect(first.adminKey).toHaveLength(43);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(ensureKeys(path)).toEqual({ ...first, written: false });
  const other = join(folder, "other.vars");
  expect(ensureKeys(other).adminKey).not.toBe(first.adminKey);
  writeFileSync(other, "SIGNING_SECRET=x\n");
  expect(() => ensureKeys(other)).toThrow("has no ADMIN_KEY");
});

test("[I7] keys of Web Push are written once, also into a file of before them", () => {
  const older = join(folder, "older.vars");
  writeFileSync(older, "ADMIN_KEY=k\nSIGNING_SECRET=x\n");
  expect(ensureKeys(older)).toEqual({ adminKey: "k", written: false });
  const { VAPID_KEYS, ...others } = readVariables(older);
  expect(others).toEqual({ ADMIN_KEY: "k", SIGNING_SECRET: "x" });
  expect(vapidKeysOf({ VAPID_KEYS }).publicKey).toHaveLength(87);
  ensureKeys(older);
  expect(readVariables(older)).toMatchObject({ VAPID_KEYS });
});

test("the demo is seeded once, and an interrupted seeding continues", async () => {
  const memory = join(folder, "demo.json");
  const first = await seedDemo(house.url, house.adminKey, memory);
  expect(first.seeded).toBe(true);
  const second = await seedDemo(house.url, house.adminKey, memory);
  expect(second).toMatchObject({ seeded: false, secretKey: first.secretKey, spaces: first.spaces });

  const remembered = JSON.parse(readFileSync(memory, "utf8")) as { ids: Record<string, string> };
  delete remembered.ids["Project Alpha"];
  writeFileSync(memory, JSON.stringify(remembered));
  const third = await seedDemo(house.url, house.adminKey, memory);
  expect(third.seeded).toBe(true);
  expect(third.people.map(({ id }) => id)).toEqual(first.people.map(({ id }) => id));

  const [husam] = third.people;
  expect(husam?.link).toMatch(/#sign-in=si_wsp_/);
  const mine = await createApi(house.url, third.secretKey)
    .as(husam?.id ?? "")
    .get<{ items: { name: string }[] }>("/v1/spaces");
  expect(mine.items.map(({ name }) => name)).toContain("Town Square");
});

test("the server stores its objects' data, and no observability data", () => {
  const written = readdirSync(join(house.dataDirectory, "v3"));
  expect(written).toContain("do");
  expect(written).not.toContain("observability");
});

test("data made with other keys is refused with the command that helps", async () => {
  const memory = join(folder, "foreign.json");
  writeFileSync(memory, JSON.stringify({ workspaceId: "wsp_x", secretKey: "sk_wsp_x_y", ids: {} }));
  await expect(seedDemo(house.url, house.adminKey, memory)).rejects.toThrow("npm start -- --fresh");
});

test("a server ends with the process that started it, even after SIGKILL", async () => {
  const port = await freePort();
  const server = JSON.stringify(resolve("scripts/server.ts"));
  const options = JSON.stringify({
    dataDirectory: join(folder, "data"),
    port,
    variables: { SIGNING_SECRET: "x".repeat(32) },
  });
  const program = `const { startServer } = await import(${server}); console.log((await startServer(${options})).url);`;
  const starter = spawn(process.execPath, ["--input-type=module", "-e", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [url] = await new Promise<string[]>((started) =>
    createInterface(starter.stdout).once("line", (line) => started([line])),
  );
  expect((await fetch(`${url}/healthz`)).ok).toBe(true);
  starter.kill("SIGKILL");
  await vi.waitFor(async () => expect(await isPortFree(port)).toBe(true), { timeout: 10_000 });
});

/** The repository again, with data and keys of its own. */
const checkOut = (): string => {
  const checkout = mkdtempSync(join(folder, "checkout-"));
  for (const path of [
    ...["package.json", "package-lock.json", ".npmrc", "tsconfig.json", "wrangler.toml", "scripts", "src"],
    ...["migrations", "dist", "docs/examples"],
  ]) {
    cpSync(path, join(checkout, path), { recursive: true });
  }
  symlinkSync(resolve("node_modules"), join(checkout, "node_modules"));
  return checkout;
};

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

test.each(["SIGTERM", "SIGINT"] as const)("%s to npm start alone ends every process that it began", async (signal) => {
  const port = await freePort();
  const npm = spawn("npm", ["start"], {
    cwd: checkOut(),
    env: { ...process.env, PORT: String(port) },
    stdio: ["ignore", "pipe", "inherit"],
    detached: true,
  });
  const ended = new Promise((resume) => npm.once("close", resume));
  await new Promise<void>((ready, failed) => {
    createInterface(npm.stdout).on("line", (line) => line.includes("Ctrl-C stops it") && ready());
    void ended.then(() => failed(new Error("npm start ended by itself")));
  });
  const begun = processTree(npm.pid ?? 0);
  onTestFinished(() => {
    for (const { pid } of begun) if (isAlive(pid)) process.kill(pid, "SIGKILL");
  });
  expect(begun.map(({ command }) => command)).toContain("workerd");

  npm.kill(signal);
  await ended;
  await vi.waitFor(() => expect(begun.filter(({ pid }) => isAlive(pid))).toEqual([]), { timeout: 10_000 });
  expect(await isPortFree(port)).toBe(true);
});

/** `fetch` sends no Host of one's own. */
const answerTo = (path: string, host: string): Promise<{ status: number | undefined; type: string | undefined }> =>
  new Promise((answered, failed) => {
    request(house.url + path, { headers: { host } }, ({ statusCode, headers, socket }) => {
      socket.destroy();
      answered({ status: statusCode, type: headers["content-type"]?.split(";")[0] });
    })
      .once("error", failed)
      .end();
  });

test("the local runtime shows nobody its objects and their SQL: the page is all that is there", async () => {
  const page = await answerTo("/", "127.0.0.1");
  expect(page).toEqual({ status: 200, type: "text/html" });
  for (const path of ["/explorer", "/explorer/api", "/explorer/api/workers", "/r2/public/bucket/key"]) {
    expect(await answerTo(`/cdn-cgi/local${path}`, "127.0.0.1")).toEqual(page);
    const text = await (await fetch(`${house.url}/cdn-cgi/local${path}`)).text();
    expect(text).toContain("<title>Colloquy</title>");
  }
});

test("requests under another name than this machine's own are refused", async () => {
  for (const path of ["/healthz", "/v1/spaces", "/openapi.json", "/cdn-cgi/local/explorer/api"]) {
    expect(await answerTo(path, "house.example")).toEqual({ status: 403, type: "text/plain" });
  }
  for (const host of ["127.0.0.1", "localhost", "[::1]"]) expect((await answerTo("/healthz", host)).status).toBe(200);
});

test("the server listens on loopback only", async () => {
  const { port } = new URL(house.url);
  const outward = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  for (const { address, family, internal } of outward) {
    if (internal || family !== "IPv4") continue;
    await expect(fetch(`http://${address}:${port}/healthz`)).rejects.toThrow();
  }
});
