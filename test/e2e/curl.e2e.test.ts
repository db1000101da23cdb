import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { promisify } from "node:util";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { expect, onTestFinished, test } from "vitest";
import { houseForFile } from "./support/for-file.ts";

const house = await houseForFile();

const commandsIn = (page: string): string[] =>
  [...readFileSync(`docs/${page}.md`, "utf8").matchAll(/^```sh\n([\s\S]*?)^```/gm)].map(([, text = ""]) => text);

const onThisHouse = (commands: string): string =>
  commands.replace(/^API=.*/m, `API=${house.url}`).replace(/^KEY=.*/m, `KEY=${house.secretKey}`);

const run = async (script: string): Promise<string> =>
  (await promisify(execFile)("bash", ["-euo", "pipefail", "-c", script])).stdout;

/** The page's commands as one script, on this server. It waits for the run's end where the page waits for some seconds. */
const script = (): string =>
  onThisHouse(commandsIn("curl").join("\n")).replace(
    "sleep 4",
    `until call $API/v1/agents/$AGENT/runs | grep -q '"status":"completed"'; do :; done`,
  );

test("every command of docs/curl.md works as written", async () => {
  const stdout = await run(script());
  expect(stdout).toContain("event: space.message");
  expect(stdout).toContain("\n4\nAda: count to 5\nEcho: 1, 2, 3, 4, 5\n");
  expect(stdout).toContain("send_message");
  expect(stdout).toContain("INBOX (1 event, ");
  expect(stdout).toContain('"name":"llama3.2"');
});

test("[L2] [L7] every command of docs/credentials.md works as written", async () => {
  const { privateKey, publicKey } = await generateKeyPair("ES256");
  const body = JSON.stringify({ keys: [await exportJWK(publicKey)] });
  const issuer = createServer((_, response) => void response.setHeader("content-type", "application/json").end(body));
  onTestFinished(() => void issuer.close());
  const port = await new Promise<number>((listening) => {
    issuer.listen(0, "127.0.0.1", () => listening((issuer.address() as AddressInfo).port));
  });
  const jwt = await new SignJWT({ name: "Own User" })
    .setProtectedHeader({ alg: "ES256" })
    .setSubject("own-1")
    .setIssuer("https://issuer.example")
    .setAudience("colloquy")
    .setExpirationTime("1h")
    .sign(privateKey);
  const person = await house.addPerson("Ada");
  const leaked = await house.api.post<{ secretKey: string }>("/v1/workspace/keys", {});
  const [given = ""] = commandsIn("curl");
  const names = { PERSON: person.id, WORKSPACE: house.workspaceId, JWT: jwt };
  const commands = commandsIn("credentials")
    .join("\n")
    .replace(/^LEAKED=.*/m, `LEAKED=${leaked.secretKey}`)
    .replace("https://issuer.example/.well-known/jwks.json", `http://127.0.0.1:${port}/jwks.json`);
  const set = Object.entries(names).map(([name, value]) => `${name}=${value}`);
  const stdout = await run([onThisHouse(given), ...set, commands].join("\n"));
  expect(stdout).toContain('"name":"Reports","scopes":["read"]');
  expect(stdout).toContain('"firstSight":{"role":"member"}');
  expect(stdout).not.toContain("https://colloquy.dev/problems/");
  const status = async (bearer: string) => {
    const headers = { authorization: `Bearer ${bearer}`, "x-workspace-id": house.workspaceId };
    return (await fetch(`${house.url}/v1/spaces`, { headers })).status;
  };
  expect([await status(leaked.secretKey), await status(person.token), await status(jwt)]).toEqual([401, 401, 401]);
});
