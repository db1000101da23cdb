import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { houseForFile } from "./support/for-file.ts";

const house = await houseForFile();

/** The page's commands as one script, on this server. It waits for the run's end where the page waits for some seconds. */
const script = (): string =>
  [...readFileSync("docs/curl.md", "utf8").matchAll(/^```sh\n([\s\S]*?)^```/gm)]
    .map(([, commands = ""]) => commands)
    .join("\n")
    .replace(/^API=.*/m, `API=${house.url}`)
    .replace(/^KEY=.*/m, `KEY=${house.secretKey}`)
    .replace("sleep 4", `until call $API/v1/agents/$AGENT/runs | grep -q '"status":"completed"'; do :; done`);

test("every command of docs/curl.md works as written", async () => {
  const { stdout } = await promisify(execFile)("bash", ["-euo", "pipefail", "-c", script()]);
  expect(stdout).toContain("event: space.message");
  expect(stdout).toContain("\n4\nAda: count to 5\nEcho: 1, 2, 3, 4, 5\n");
  expect(stdout).toContain("send_message");
  expect(stdout).toContain("INBOX (1 event, ");
  expect(stdout).toContain('"name":"llama3.2"');
});
