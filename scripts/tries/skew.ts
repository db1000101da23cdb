import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type FakeOpenAi, startFakeOpenAi } from "../../test/support/fake-openai.ts";
import { ApiError } from "../api.ts";
import { freePort } from "../server.ts";
import { answerTo, openScene, type Scene, until, use } from "./scene.ts";

/**
 * `npm run try -- skew [COMMIT]` (L14): the last release's own code, from this repository's history, beside this one's. Each
 * worker serves each mixture of objects, kind by kind. Then one house's data passes from the one release to the other and back.
 */
const root = resolve(import.meta.dirname, "../..");
const record = readFileSync(join(root, "test/protocol/last-release.golden.ts"), "utf8");
const variables = {
  ...{ ADMIN_KEY: "tried-by-hand", SIGNING_SECRET: "a signing secret, of at least 32 characters" },
  ...{ ENVIRONMENT: "development", RATE_LIMITS: "off" },
};
const kinds = { WORKSPACE: "Workspace", SPACE: "Space", AGENT: "Agent" };
type Kind = keyof typeof kinds;
type Release = "today" | "last";
type Places = Record<Release, string>;

/** The sources of a commit, with the packages of this checkout. */
const placeOf = (commit: string, into: string): string => {
  const sources = execFileSync("git", ["archive", commit], { cwd: root, maxBuffer: 2 ** 30 });
  mkdirSync(join(into, "dist/web"), { recursive: true });
  execFileSync("tar", ["-x", "-C", into], { input: sources });
  symlinkSync(join(root, "node_modules"), join(into, "node_modules"));
  return into;
};

/** A release's own configuration, with objects of these kinds in the other release's worker. */
const configOf = (place: string, name: string, other: string, elsewhere: readonly Kind[]): string => {
  let text = readFileSync(join(place, "wrangler.toml"), "utf8")
    .replace('name = "colloquy"', `name = "${name}"`)
    .replace('main = "src/worker.ts"', 'main = "scripts/local-worker.ts"')
    .replace('[ai]\nbinding = "AI"\n', "")
    .replace(
      "[vars]\n",
      `[vars]\n${Object.entries(variables)
        .map((each) => `${each[0]} = "${each[1]}"\n`)
        .join("")}`,
    );
  for (const kind of elsewhere) {
    text = text.replace(`class_name = "${kinds[kind]}"\n`, (line) => `${line}script_name = "${other}"\n`);
  }
  const file = join(place, "skew.toml");
  writeFileSync(file, text);
  return file;
};

/** `wrangler dev` of these configurations; the first one serves. It ends after four minutes, whatever becomes of this process. */
const serve = async (configs: string[], data: string, port: number): Promise<() => Promise<void>> => {
  const asked = ["wrangler", "dev", "--local", "--ip", "127.0.0.1", "--port", String(port), "--persist-to", data];
  const lines = ["-s", "KILL", "240", "npx", ...asked, ...configs.flatMap((config) => ["-c", config])];
  const quiet = { CI: "true", NO_COLOR: "1", CLOUDFLARE_CF_FETCH_ENABLED: "false", WRANGLER_SEND_METRICS: "false" };
  const env = { ...process.env, ...quiet, X_LOCAL_EXPLORER: "false", WRANGLER_REGISTRY_PATH: join(data, "registry") };
  const child = spawn("timeout", lines, { cwd: root, detached: true, stdio: ["ignore", "pipe", "pipe"], env });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (said = (said + chunk).slice(-4000)));
  const ended = new Promise<void>((done) => child.once("close", () => done()));
  const end = async (): Promise<void> => {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, "SIGKILL");
    await ended;
  };
  const answers = () =>
    fetch(`http://127.0.0.1:${port}/healthz`).then(
      ({ ok }) => ok,
      () => false,
    );
  await until("the worker answers", answers, 120_000).catch(async (error: Error) => {
    await end();
    throw new Error(`${error.message}\n${said}`);
  });
  return end;
};

type House = { scene: Scene } & Awaited<ReturnType<Scene["room"]>>;
const settle = async (scene: Scene): Promise<House> => ({ scene, ...(await scene.room()) });

/** A person asks, the agent answers: both once, on the socket and in the space, and the agent knows it by its search. */
const talks = async ({ scene, husam, analyst, alpha }: House, word: string): Promise<void> => {
  const socket = new WebSocket(`${scene.url.replace("http", "ws")}/v1/spaces/${alpha}/stream?token=${husam.token}`);
  let frames = "";
  socket.addEventListener("message", ({ data }) => (frames += String(data)));
  await new Promise<void>((open, fail) => {
    socket.addEventListener("open", () => open());
    socket.addEventListener("error", () => fail(new Error("the socket did not open")));
  });
  const [asked, answered] = [`Which ${word}?`, `The ${word} of May.`];
  const memories = [{ key: word, value: answered }];
  const wanted = [
    use("send_message", { text: answered }),
    use("set_memories", { memories }),
    use("search", { query: word }),
  ];
  const { run, outputs } = await analyst.does(husam, alpha, asked, ...wanted);
  scene.check(`${word}: the run ends`, run.status === "completed", run);
  scene.check(`${word}: no call fails`, outputs.length === 3 && !outputs.join().includes('"error"'), outputs);
  await until("the socket has the answer", async () => frames.includes("of May")).catch(() => undefined);
  scene.check(
    `${word}: the socket was told both`,
    [asked, "of May"].every((text) => frames.includes(text)),
    frames,
  );
  const texts = (await scene.messages(alpha)).map(({ text }) => text);
  const once = [asked, answered].every((text) => texts.filter((each) => each === text).length === 1);
  scene.check(`${word}: both stand in the space once`, once, texts);
  socket.close();
};

/** What is read, and what only this release can do: it is answered, or refused by name, and then it went undone. */
const asks = async (house: House, refusals: number[]): Promise<void> => {
  const { scene, husam, analyst, alpha } = house;
  const { api } = scene;
  let said = "";
  await analyst.after(async () => (said = await husam.post(alpha, "A slip of the pen")));
  const message = `/v1/spaces/${alpha}/messages/${said}`;
  const reads = ["/v1/agents", "/v1/spaces", "/v1/entities", `/v1/spaces/${alpha}`, `/v1/spaces/${alpha}/messages`];
  const ofAgent = ["blocks", "archival", "memories", "plans", "runs", "inbox", "context", `knows?messageId=${said}`];
  await answered(house, "the export", exported(house));
  for (const path of [...reads, ...ofAgent.map((part) => `${analyst.at}/${part}`)])
    await answered(house, path, api.get(path));
  const mine = ["/v1/workspace/keys", "/v1/workspace", "/v1/usage?by=agent", "/v1/workspace/audit", "/v1/erasures"];
  for (const path of mine) await answered(house, path, api.get(path), refusals);
  const newOnly: [string, () => Promise<unknown>][] = [
    ["edit", () => api.as(husam.id).patch(message, { text: "A slip no more" })],
    ["delete", () => api.as(husam.id).delete(message)],
    ["a key of few rights", () => api.post("/v1/workspace/keys", { name: "Reports", scopes: ["read"] })],
  ];
  for (const [what, ask] of newOnly) await answered(house, what, ask(), refusals);
};

const exported = async ({ scene, analyst }: House): Promise<void> => {
  const headers = { authorization: `Bearer ${scene.secretKey}` };
  const response = await fetch(`${scene.url}${analyst.at}/export`, { headers });
  const text = await response.text();
  if (!response.ok) throw new ApiError(text, response.status);
  if (!text.includes("May")) throw new Error(`the export lacks what was said: ${text}`);
};

const answered = async (
  { scene }: House,
  what: string,
  asked: Promise<unknown>,
  refusals: number[] = [],
): Promise<void> => {
  const error = await asked.then(
    () => undefined,
    (failure: unknown) => failure,
  );
  const holds = error === undefined || (error instanceof ApiError && refusals.includes(error.status));
  if (!holds) scene.check(`${what} is answered`, false, String(error));
  else scene.checked.push(true);
};

/** A worker of the last release has no route for what is new; today's says that an object cannot do it yet. */
const refusalsOf = (worker: Release, ofOther: Kind[]): number[] => {
  if (worker === "last") return [400, 404, 405, 503];
  return ofOther.length === 0 ? [] : [503];
};

const mixtures = Array.from({ length: 8 }, (_, bits) =>
  (Object.keys(kinds) as Kind[]).filter((_kind, index) => (bits & (1 << index)) !== 0),
);

const tryMixture = async (places: Places, worker: Release, ofOther: Kind[], model: FakeOpenAi): Promise<boolean[]> => {
  const other = worker === "today" ? "last" : "today";
  const own = (Object.keys(kinds) as Kind[]).filter((kind) => !ofOther.includes(kind));
  console.log(`\nworker of ${worker}, objects of ${other}: ${ofOther.map((kind) => kinds[kind]).join(", ") || "none"}`);
  const configs = [configOf(places[worker], worker, other, ofOther), configOf(places[other], other, worker, own)];
  const data = mkdtempSync(join(tmpdir(), "skew-data-"));
  const port = await freePort();
  const end = await serve(configs, data, port);
  try {
    const checked: boolean[] = [];
    for (const continuity of ["timeline", "consciousness"] as const) {
      const scene = await openScene(`http://127.0.0.1:${port}`, variables.ADMIN_KEY, model, continuity);
      const lives = async (): Promise<void> => {
        const house = await settle(scene);
        await talks(house, "quinces");
        await asks(house, refusalsOf(worker, ofOther));
        await talks(house, "pears");
      };
      await lives().catch((error: unknown) => scene.check("it goes to its end", false, String(error)));
      checked.push(...scene.checked);
    }
    return checked;
  } finally {
    await end();
    rmSync(data, { recursive: true });
  }
};

/** One house's data, from release to release and back: `docs/operating.md`, "Roll a release back". */
const tryRolling = async (places: Places, model: FakeOpenAi): Promise<boolean[]> => {
  const data = mkdtempSync(join(tmpdir(), "skew-data-"));
  const port = await freePort();
  const words = ["quinces", "pears", "plums", "apples"];
  let house: House | undefined;
  try {
    for (const [index, release] of (["last", "today", "last", "today"] as const).entries()) {
      console.log(`\none house's data, now of ${release}`);
      const end = await serve([configOf(places[release], "colloquy", "", [])], data, port);
      try {
        house ??= await settle(
          await openScene(`http://127.0.0.1:${port}`, variables.ADMIN_KEY, model, "consciousness"),
        );
        await talks(house, words[index] ?? "");
        if (release === "today") await asks(house, []);
        const texts = (await house.scene.messages(house.alpha)).map(({ text }) => text).join();
        const all = words.slice(0, index + 1).every((word) => texts.includes(`The ${word} of May.`));
        house.scene.check("what was said before is there", all, texts);
      } finally {
        await end();
      }
    }
    return house?.scene.checked ?? [false];
  } finally {
    rmSync(data, { recursive: true });
  }
};

export const trySkew = async (commit = /actors of (\w+)/.exec(record)?.[1] ?? ""): Promise<boolean> => {
  const place = mkdtempSync(join(tmpdir(), "skew-"));
  const model = await startFakeOpenAi(answerTo);
  const checked: boolean[] = [];
  try {
    const places = { today: placeOf("HEAD", join(place, "today")), last: placeOf(commit, join(place, "last")) };
    for (const worker of ["today", "last"] as const) {
      for (const ofOther of mixtures) checked.push(...(await tryMixture(places, worker, ofOther, model)));
    }
    checked.push(...(await tryRolling(places, model)));
  } finally {
    await model.stop();
    if (existsSync(place)) rmSync(place, { recursive: true });
  }
  const held = checked.filter((holds) => holds).length;
  console.log(`\n${held} of ${checked.length}`);
  return held === checked.length;
};
