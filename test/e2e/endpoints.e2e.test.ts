import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { promisify } from "node:util";
import { Webhook } from "standardwebhooks";
import { expect, onTestFinished, test, vi } from "vitest";
import { ownHouseForFile } from "./support/for-file.ts";

/** A new user's system, on loopback, by the commands of docs/endpoints.md. It remembers ids, as the page tells it to. */
const house = await ownHouseForFile();
const patience = { timeout: 60_000, interval: 100 };

const blocks = [...readFileSync("docs/endpoints.md", "utf8").matchAll(/^```sh\n([\s\S]*?)^```/gm)].map(
  ([, text = ""]) => text,
);
const run = async (...commands: string[]): Promise<string[]> => {
  const script = [`API=${house.url}`, `KEY=${house.secretKey}`, ...commands].join("\n");
  const { stdout } = await promisify(execFile)("bash", ["-euo", "pipefail", "-c", script]);
  return stdout.trim().split("\n");
};

/** Rejects where its sender was cut off. */
const bodyOf = async (request: IncomingMessage): Promise<string> => {
  let text = "";
  for await (const chunk of request.setEncoding("utf8")) text += chunk;
  return text;
};

type Event = { id: string; data: { message: { text: string } } };

test("[E1] [E4] a system on loopback hears of each message once over SIGKILLs", async () => {
  const handled = new Map<string, string>();
  const ids: string[] = [];
  let webhook: Webhook | undefined;
  const unsigned: unknown[] = [];
  const server = createServer(async (request, response) => {
    const body = await bodyOf(request).catch(() => undefined);
    if (body === undefined) return;
    try {
      const event = webhook?.verify(body, request.headers as Record<string, string>) as Event;
      ids.push(String(request.headers["webhook-id"]));
      // What a crash cuts comes again: some of its answers do not arrive.
      await wait(30);
      if (!handled.has(event.id)) handled.set(event.id, event.data.message.text);
      response.writeHead(204).end();
    } catch (error) {
      unsigned.push(error);
      response.writeHead(400).end();
    }
  });
  onTestFinished(() => void server.close());
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/colloquy`;
  const [first = "", second = "", third = ""] = blocks;
  const setUp = first
    .replace("https://receiver.example/colloquy", url)
    .replace('"space.message", "run.*"', '"space.message"')
    .replace(/^call -X PATCH.*$/m, 'echo "$SECRET"; echo "$ENDPOINT"');
  const [secret = "", endpoint = ""] = (await run(setUp)).slice(-2);
  webhook = new Webhook(secret);

  const ann = await house.addPerson("Ann");
  const space = await house.addSpace("Desk", [ann.id]);
  const texts = Array.from({ length: 40 }, (_, index) => `message ${index}`);
  const say = async (text: string): Promise<void> => {
    for (;;) {
      const answer = await ann.api
        .post(`/v1/spaces/${space}/messages`, { text, clientKey: text })
        .catch(() => undefined);
      if (answer !== undefined) return;
      await wait(50);
    }
  };
  const saying = (async () => {
    for (const text of texts) await say(text);
  })();
  for (const many of [5, 15]) {
    await vi.waitFor(() => expect(handled.size).toBeGreaterThanOrEqual(many), patience);
    await house.crash();
  }
  await saying;
  await vi.waitFor(() => expect([...handled.values()]).toEqual(texts), patience);
  expect(new Set(ids)).toEqual(new Set(handled.keys()));

  const names = [first.split("\n").slice(0, 2).join("\n"), `ENDPOINT=${endpoint}`];
  const count = ids.length;
  const listed = await run(...names, second);
  expect(listed.filter((line) => line.endsWith(" 204")).length).toBeGreaterThanOrEqual(texts.length);
  await vi.waitFor(() => expect(ids.length).toBeGreaterThanOrEqual(count + texts.length), patience);
  expect(new Set(ids)).toEqual(new Set(handled.keys()));
  expect((await run(...names, third))[0]).toMatch(/^whsec_/);
  expect(unsigned).toEqual([]);
}, 180_000);
