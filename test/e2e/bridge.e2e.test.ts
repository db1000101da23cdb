import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test, vi } from "vitest";
import { freePort } from "../../scripts/server.ts";
import type { Message } from "../../src/protocol/message.ts";
import { houseForFile } from "./support/for-file.ts";

/** docs/examples/bridge.ts as a process of its own, between a space and a chat system of another kind. */
const house = await houseForFile();

type ChatMessage = { id: string; author: string; text: string; replyTo?: string; root?: string };

/** A chat system: it knows each message by its id, and posts each to its bridges until they answer 2xx. */
const openChat = async () => {
  const messages: ChatMessage[] = [];
  const bridges: { url: string; told: number }[] = [];
  const received: string[] = [];
  const say = (message: ChatMessage): void => {
    if (!messages.some(({ id }) => id === message.id)) messages.push(message);
  };
  const server = createServer(async (request, response) => {
    if (request.method === "GET") {
      const found = messages.find(({ id }) => request.url === `/messages/${id}`);
      return response.writeHead(found ? 200 : 404).end(JSON.stringify(found ?? {}));
    }
    let text = "";
    for await (const chunk of request.setEncoding("utf8")) text += chunk;
    const message = JSON.parse(text) as ChatMessage;
    received.push(message.id);
    say(message);
    return response.writeHead(201).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const telling = setInterval(async () => {
    for (const bridge of bridges) {
      const message = messages[bridge.told];
      if (!message) continue;
      const told = fetch(`${bridge.url}/chat`, { method: "POST", body: JSON.stringify(message) });
      if (await told.then(({ ok }) => ok).catch(() => false)) bridge.told = messages.indexOf(message) + 1;
    }
  }, 50);
  onTestFinished(() => {
    clearInterval(telling);
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    say,
    bridges,
    received,
    texts: () => messages.map(({ author, text }) => `${author}: ${text}`),
    messages,
  };
};
type Chat = Awaited<ReturnType<typeof openChat>>;

/** A bridge of the space to the chat. It can be killed, and begun again at the same address. */
const openBridge = async (spaceId: string, chat: Chat, name = "Bridge") => {
  const { entity } = await house.api.post<{ entity: { id: string } }>("/v1/entities", {
    type: "service",
    name,
  });
  await house.api.post(`/v1/spaces/${spaceId}/members`, { entityId: entity.id });
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const made = { url, types: ["space.message"], spaceIds: [spaceId] };
  const { secret } = await house.api.post<{ secret: string }>("/v1/workspace/endpoints", made);
  const variables = {
    ...{ COLLOQUY_URL: house.url, COLLOQUY_KEY: house.secretKey, SPACE_ID: spaceId, SERVICE_ID: entity.id },
    ...{ ENDPOINT_SECRET: secret, CHAT_URL: chat.url, PORT: String(port) },
  };
  let child: ChildProcess | undefined;
  const begin = async (): Promise<void> => {
    child = spawn(process.execPath, ["docs/examples/bridge.ts"], {
      stdio: ["ignore", "pipe", "inherit"],
      env: { ...process.env, ...variables },
    });
    await once(child.stdout ?? child, "data");
  };
  const kill = async (): Promise<void> => {
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "close");
    child.kill("SIGKILL");
    await ended;
  };
  onTestFinished(kill);
  await begin();
  chat.bridges.push({ url, told: 0 });
  return { begin, kill };
};

const scene = async (...agents: string[]) => {
  const ada = await house.addPerson("Ada");
  const spaceId = await house.addSpace("Bridged", [ada.id, ...agents]);
  const chat = await openChat();
  const say = (text: string) => ada.api.post(`/v1/spaces/${spaceId}/messages`, { text });
  const heard = async (): Promise<string[]> => {
    const { items } = await ada.api.get<{ items: Message[] }>(`/v1/spaces/${spaceId}/messages?limit=100`);
    return items.map(({ sender, text }) => `${sender.name}: ${text}`);
  };
  const settled = (look: () => Promise<void> | void) => vi.waitFor(look, { timeout: 30_000, interval: 100 });
  return { ada, spaceId, chat, say, heard, settled };
};

test("[E1] [E3] a bridge carries each message over once, both ways, and an agent's answer too", async () => {
  const robo = await house.addAgent({ name: "Robo", continuity: "timeline" });
  const { spaceId, chat, say, heard, settled } = await scene(robo);
  await openBridge(spaceId, chat);
  await say("Hello over there");
  await settled(() => expect(chat.texts()[0]).toBe("Ada: Hello over there"));
  chat.say({ id: "c1", author: "Zed", text: "@Robo can you hear me?" });
  await settled(async () => expect(await heard()).toContain("Bridge: Zed: @Robo can you hear me?"));
  await settled(() => expect(chat.texts().filter((text) => text.startsWith("Robo: "))).not.toEqual([]));
  const [inSpace, inChat] = [await heard(), chat.texts()];
  expect(new Set(inSpace).size).toBe(inSpace.length);
  expect(inChat.filter((text) => text.includes("can you hear me"))).toEqual(["Zed: @Robo can you hear me?"]);
  expect(inSpace.filter((text) => text.includes("Hello over there"))).toEqual(["Ada: Hello over there"]);
});

test("[E1] two bridges between the same two come to an end", async () => {
  const { spaceId, chat, say, heard, settled } = await scene();
  await openBridge(spaceId, chat);
  await openBridge(spaceId, chat, "Other bridge");
  await say("Once here");
  chat.say({ id: "c1", author: "Zed", text: "Once there" });
  // Each carries it in, and the other one carries that out. It bears its root by then, and comes in no more.
  await settled(async () => expect((await heard()).filter((text) => text.includes("Once there"))).toHaveLength(2));
  await say("And last");
  await settled(() => expect(chat.texts().filter((text) => text.includes("And last"))).toHaveLength(1));
  await settled(() => expect(chat.bridges.every(({ told }) => told === chat.messages.length)).toBe(true));
  expect(chat.texts().filter((text) => text.includes("Once here"))).toEqual(["Ada: Once here"]);
  expect((await heard()).filter((text) => text.includes("Once here"))).toEqual(["Ada: Once here"]);
  expect((await heard()).filter((text) => text.includes("Once there"))).toHaveLength(2);
  expect(chat.texts().filter((text) => text.includes("Once there"))).toHaveLength(3);
});

test("[E1] [R1] a bridge that is killed and begun again loses nothing and says nothing twice", async () => {
  const { spaceId, chat, say, heard, settled } = await scene();
  const bridge = await openBridge(spaceId, chat);
  const [outwards, inwards] = [1, 2].map((part) =>
    Array.from({ length: 12 }, (_, index) => `part ${part} line ${index}`),
  );
  const speaking = (async () => {
    for (const [index, text] of (outwards ?? []).entries()) {
      await say(text);
      chat.say({ id: `c${index}`, author: "Zed", text: inwards?.[index] ?? "" });
    }
  })();
  await settled(() => expect(chat.received.length).toBeGreaterThan(1));
  await bridge.kill();
  await speaking;
  await bridge.begin();
  await settled(() => expect(chat.texts().filter((text) => text.startsWith("Ada: "))).toHaveLength(12));
  await settled(async () => expect((await heard()).filter((text) => text.startsWith("Bridge: "))).toHaveLength(12));
  expect(chat.texts().filter((text) => text.startsWith("Ada: "))).toEqual(outwards?.map((text) => `Ada: ${text}`));
  expect((await heard()).filter((text) => text.startsWith("Bridge: "))).toEqual(
    inwards?.map((text) => `Bridge: Zed: ${text}`),
  );
});
