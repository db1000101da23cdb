import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createClient } from "../../src/client/index.ts";
import { type FakeOpenAi, startFakeOpenAi } from "../../test/support/fake-openai.ts";
import { ApiError, createApi } from "../api.ts";
import { ensureKeys } from "../keys.ts";
import { readVariables, writeVariable } from "../secrets.ts";
import { freePort, type Server, startServer } from "../server.ts";
import { answerTo, openScene, say, until } from "./scene.ts";

/**
 * `npm run try -- operators`: what an operator does on a running house, by the commands of `docs/operating.md`,
 * `docs/credentials.md`, `docs/erasure.md` and `docs/limits.md`, word for word. `npm run rotate` gets another file and address. After
 * each a second workspace tells whether it noticed.
 */
const root = resolve(import.meta.dirname, "../..");
const docs = ["operating", "credentials", "erasure", "limits", "curl"].map((name) =>
  readFileSync(join(root, `docs/${name}.md`), "utf8"),
);

const checked: boolean[] = [];
const check = (what: string, holds: boolean, instead: unknown = ""): void => {
  checked.push(holds);
  console.log(`  ${holds ? "ok " : "NOT"} ${what}`);
  if (!holds) console.log(typeof instead === "string" ? instead : JSON.stringify(instead));
};

/** Commands that were found in the docs. */
const said = new Set<string>();

/** Runs a command of the docs, in a shell that has what the docs define. `fill` puts ids in the place of `ent_…` and others. */
const byDocs = (command: string, variables: Record<string, string>, fill: [string, string][] = []): string => {
  if (!said.has(command)) {
    said.add(command);
    check(
      `the docs say: ${command.split("\n")[0]}`,
      docs.some((text) => text.includes(command)),
    );
  }
  const filled = fill.reduce((text, [from, to]) => text.replace(from, to), command);
  const shell = `operate() { curl -s -H "Authorization: Bearer $ADMIN_KEY" -H "content-type: application/json" "$@"; }
call() { curl -s -H "authorization: Bearer $KEY" -H "content-type: application/json" "$@"; }
${filled}`;
  const { stdout, stderr } = spawnSync("bash", ["-c", shell], {
    env: { ...process.env, ...variables },
    encoding: "utf8",
  });
  return stdout || stderr;
};

const json = <T>(text: string): T => JSON.parse(text) as T;
type Overview = { workspace: { waiting: number; suspended?: unknown; deletedAt?: string } };
type Erasure = { erasure: { state: string } };

const statusOf = (request: Promise<unknown>): Promise<number> =>
  request.then(
    () => 200,
    (error: unknown) => (error instanceof ApiError ? error.status : 0),
  );

/** Somebody of another workspace, connected all the time: each word is answered by its agent. */
const openBystander = async (url: string, adminKey: string, model: FakeOpenAi) => {
  const scene = await openScene(url, adminKey, model, "consciousness");
  const { husam, analyst, alpha } = await scene.room();
  const live = createClient({ baseUrl: url, token: husam.token }).openSpace(alpha, {
    timings: { minDelayMs: 100, maxDelayMs: 1000 },
  });
  const isOpen = (): boolean => live.getSnapshot().connection.status === "open";
  await until("the bystander is connected", async () => isOpen());
  let words = 0;
  return {
    ...{ key: scene.secretKey, token: husam.token, id: husam.id },
    close: () => live.close(),
    /** Says something by its socket, and waits for its agent to have read it. */
    async notices(after: string): Promise<void> {
      words += 1;
      const text = `Still here, ${words}?`;
      analyst.play(say("Yes."));
      const ran = analyst.after(async () => live.send(text));
      await ran.catch(() => undefined);
      const { messages } = live.getSnapshot();
      const isTold = messages.filter((message) => message.text === text).length === 1;
      check(`nobody else noticed: ${after}`, isTold && isOpen(), live.getSnapshot().connection);
    },
  };
};

export const tryOperators = async (): Promise<boolean> => {
  const place = mkdtempSync(join(tmpdir(), "operators-"));
  const secrets = join(place, "house.vars");
  const { adminKey } = ensureKeys(secrets);
  writeVariable(secrets, "RATE_LIMITS", "off");
  const port = await freePort();
  const start = (): Promise<Server> =>
    startServer({ dataDirectory: join(place, "data"), port, variables: readVariables(secrets) });
  let server = await start();
  const { url } = server;
  const model = await startFakeOpenAi(answerTo);
  const bystander = await openBystander(url, adminKey, model);
  const operator = { URL: url, ADMIN_KEY: adminKey, API: url };
  try {
    const open = async () => {
      const scene = await openScene(url, adminKey, model, "consciousness");
      return { scene, variables: { ...operator, KEY: scene.secretKey, WORKSPACE: scene.workspaceId } };
    };
    const { scene, variables } = await open();

    console.log("\na key leaks");
    const made = await scene.api.post<{ secretKey: string }>("/v1/workspace/keys", { name: "Reports" });
    const leaked = createApi(url, made.secretKey);
    check("it opens the workspace", (await statusOf(leaked.get("/v1/workspace"))) === 200);
    const { husam: reader, alpha: watched } = await scene.room({ name: "Lookout" });
    const line = createClient({
      ...{ baseUrl: url, token: (await leaked.post<{ token: string }>("/v1/tokens", { entityId: reader.id })).token },
    }).openSpace(watched, { timings: { minDelayMs: 100, maxDelayMs: 1000 } });
    const state = () => line.getSnapshot().connection.status;
    await until("who signed in by it is connected", async () => state() === "open");
    byDocs("call -X DELETE $API/v1/workspace/keys/key_$(echo $LEAKED | cut -d_ -f4)", {
      ...variables,
      LEAKED: made.secretKey,
    });
    const left = Date.now();
    const isOut = await until("who signed in by it is out", async () => state() !== "open");
    check("who signed in by it is out in a second", isOut && Date.now() - left < 1000, state());
    line.close();
    check("it opens nothing any more", (await statusOf(leaked.get("/v1/workspace"))) === 401);
    check("the others do", (await statusOf(scene.api.get("/v1/workspace"))) === 200);
    await bystander.notices("a key was taken back");

    console.log("\nthe secret is rotated, with clients connected");
    const rotate = async (...more: string[]): Promise<string> => {
      const args = ["scripts/rotate.ts", "--url", url, "--secrets", secrets, ...more];
      const child = spawn(process.execPath, args, { cwd: root, env: { ...process.env, ADMIN_KEY: adminKey } });
      let output = "";
      for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += String(chunk)));
      const code = await new Promise((done) => child.once("close", done));
      return code === 0 ? output : `it failed: ${output}`;
    };
    const again = async (): Promise<void> => {
      await server.stop();
      server = await start();
    };
    await scene.api.put("/v1/workspace/secrets/STRIPE", { value: "sk_test" });
    check("the first step writes a new secret", (await rotate()).includes("new first secret"));
    await again();
    const sealed = await rotate();
    check("the second seals all anew", sealed.includes(`${scene.workspaceId}: done`), sealed);
    await bystander.notices("the secret was rotated, and its token is of the one before");

    console.log("\na person is erased, who spoke in three spaces with four agents");
    const [sara, husam] = [await scene.person("Sara"), await scene.person("Husam")];
    const agents = [];
    for (let index = 0; index < 4; index += 1) agents.push(await scene.agent({ name: `Robo ${index}` }));
    const word = "quincunx";
    const spaces: string[] = [];
    for (const name of ["One", "Two", "Three"]) {
      const id = await scene.space(name, [sara, husam, ...agents], "every_message");
      spaces.push(id);
      for (const agent of agents) agent.play(say("Read."));
      await Promise.all(
        agents.map((agent, index) =>
          agent.after(() => (index === 0 ? sara.post(id, `It is ${word} in ${name}`) : Promise.resolve())),
        ),
      );
      await husam.post(id, `I say so too, in ${name}`);
    }
    byDocs(`call $API/v1/erasures -d '{"kind": "person", "id": "ent_…"}'`, variables, [["ent_…", sara.id]]);
    const report = await until("the erasure is done", async () => {
      const { erasure } = json<Erasure>(byDocs("call $API/v1/erasures/ent_…", variables, [["ent_…", sara.id]]));
      return erasure.state === "done" && erasure;
    });
    check("its report says that it is done", report.state === "done", report);
    for (const id of spaces) {
      const text = await scene.shown(`/v1/spaces/${id}/messages`);
      check(
        "the space has none of her words, and all of his",
        !text.includes(word) && text.includes("I say so too"),
        text,
      );
    }
    for (const agent of agents) {
      const text = (await scene.shown(`${agent.at}/context`)) + (await scene.shown(`${agent.at}/runs`));
      check("nor has the agent", !text.includes(word), text);
    }
    check("her token opens nothing", (await statusOf(createApi(url, sara.token).get("/v1/spaces"))) === 401);
    await bystander.notices("a person was erased");

    console.log("\na workspace exceeds its budget");
    const spent = await open();
    const limits = `curl -X PUT "$API/v1/operator/workspaces/$WORKSPACE/limits" -H "authorization: Bearer $ADMIN_KEY" -H 'content-type: application/json' \\
  -d '{"maxAgents": 20, "maxSpaces": 200, "maxEntities": 500, "maxTokensPerDay": 5000000}'`;
    const { husam: asker, analyst, alpha } = await spent.scene.room();
    byDocs(limits, spent.variables, [["5000000", "1"]]);
    await asker.post(alpha, "Is there anything left?");
    const why = await until("the agent says why it rests", async () => {
      const shown = await spent.scene.shown(analyst.at);
      return shown.includes("budget_exhausted") && shown;
    });
    check("the agent names the workspace's day", why.includes("workspace"), why);
    await bystander.notices("another workspace has spent its day");

    console.log("\na workspace is suspended, resumed and ended");
    const { husam: mona, alpha: lab } = await scene.room({ name: "Desk" });
    byDocs(`operate $URL/v1/operator/workspaces/$WORKSPACE/suspend -d '{"reason": "Unpaid since October"}'`, variables);
    const one = "operate $URL/v1/operator/workspaces/$WORKSPACE";
    const settled = (what: string) =>
      until(what, async () => {
        const { workspace } = json<Overview>(byDocs(one, variables));
        return workspace.waiting === 0 && workspace;
      });
    await settled("all is told of the suspension");
    check("a post is refused by name", (await statusOf(mona.post(lab, "Hello"))) === 503);
    check("and what was said can be read", (await statusOf(scene.messages(lab))) === 200);
    byDocs("operate -X POST $URL/v1/operator/workspaces/$WORKSPACE/resume", variables);
    await settled("all is told of the resumption");
    check("then it goes on", (await statusOf(mona.post(lab, "Hello"))) === 200);
    byDocs(`operate $URL/v1/operator/workspaces/$WORKSPACE/suspend -d '{"reason": "Unpaid since October"}'`, variables);
    await settled("all is told again");
    byDocs("operate -X DELETE $URL/v1/operator/workspaces/$WORKSPACE", variables);
    await settled("all of it is gone");
    check("its key opens nothing", [401, 404].includes(await statusOf(scene.api.get("/v1/workspace"))));
    await bystander.notices("a workspace was suspended and ended");
    check("the house is ready", byDocs("curl $URL/readyz", variables).includes('"ready":true'));
    check("and tells its figures", byDocs("operate $URL/metrics", variables).includes("# EOF"));

    console.log("\nthe old secret leaves");
    const finished = await rotate("--finish");
    check("the last step says so", finished.includes("for ids alone"), finished);
    await again();
    const kept = createApi(url, bystander.key);
    check("ids and keys of before go on", (await statusOf(kept.get("/v1/workspace"))) === 200);
    check(
      "a token that it signed does not",
      (await statusOf(createApi(url, bystander.token).get("/v1/spaces"))) === 401,
    );
    const renewed = await kept.post<{ token: string }>("/v1/tokens", { entityId: bystander.id });
    check("a new one does", (await statusOf(createApi(url, renewed.token).get("/v1/spaces"))) === 200);
  } catch (error) {
    check("goes to its end", false, String(error));
  } finally {
    bystander.close();
    await server.stop();
    await model.stop();
    rmSync(place, { recursive: true, force: true });
  }
  const held = checked.filter((holds) => holds).length;
  console.log(`\n${held} of ${checked.length}`);
  return held === checked.length;
};
