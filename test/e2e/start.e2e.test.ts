import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { createApi } from "../../scripts/api.ts";
import { seedDemo } from "../../scripts/demo.ts";
import { ensureKeys } from "../../scripts/keys.ts";
import { freePort, isPortFree } from "../../scripts/server.ts";
import { type House, openHouse } from "./support/house.ts";

/** The parts of `npm start`: keys, the demo, and a server that never outlives its starter. */
let house: House;
const folder = mkdtempSync(join(tmpdir(), "start-"));

beforeAll(async () => {
  house = await openHouse();
});

afterAll(async () => {
  await house?.close();
  rmSync(folder, { recursive: true });
});

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
  const mine = await createApi(house.url, husam?.token ?? "").get<{ items: { name: string }[] }>("/v1/spaces");
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
