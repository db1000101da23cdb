import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, onTestFinished, test, vi } from "vitest";
import type { Message } from "../../src/protocol/message.ts";
import { houseForFile } from "./support/for-file.ts";

/** The guests of docs/guests.md, as programs that are run: a person asks, and the space hears their answer. */
const house = await houseForFile();
const husam = await house.addPerson("Husam");

/** A guest agent in a space with Husam, and its program as a process of its own. */
const openGuest = async (name: string, command: string, settings: object = {}) => {
  const id = await house.addAgent({ name, runtime: "guest", ...settings });
  const { token } = await house.api.post<{ token: string }>("/v1/tokens", { entityId: id });
  const spaceId = await house.addSpace(name, [husam.id, id]);
  const variables = { COLLOQUY_URL: house.url, GUEST_ID: id, GUEST_TOKEN: token };
  const begin = async (): Promise<void> => {
    const child = spawn(command, [`docs/examples/${command === "bash" ? "guest.sh" : "guest.ts"}`], {
      stdio: ["ignore", "ignore", "inherit"],
      detached: true,
      env: { ...process.env, ...variables },
    });
    onTestFinished(async () => {
      const ended = once(child, "close");
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
      await ended;
    });
  };
  const texts = async (): Promise<(string | undefined)[]> => {
    const page = await husam.api.get<{ items: Message[] }>(`/v1/spaces/${spaceId}/messages`);
    return page.items.map(({ text }) => text);
  };
  const say = (text: string) => husam.api.post(`/v1/spaces/${spaceId}/messages`, { text });
  const hears = (expected: string[]) =>
    vi.waitFor(async () => expect(await texts()).toEqual(expected), { timeout: 30_000, interval: 100 });
  return { begin, say, hears };
};

test("[G1] [G3] docs/examples/guest.ts answers, and goes on after a SIGKILL of the server", async () => {
  const { begin, say, hears } = await openGuest("Courier", process.execPath);
  await say("Where is 42?");
  await begin();
  const first = ["Where is 42?", "Parcel 42 is on my bike, two streets away."];
  await hears(first);
  await house.crash();
  await say("And 7?");
  await hears([...first, "And 7?", "Parcel 7 is on my bike, two streets away."]);
});

test("[G1] [G2] docs/examples/guest.sh answers in plain curl", async () => {
  const { begin, say, hears } = await openGuest("Echo", "bash", { continuity: "timeline" });
  await begin();
  await say("hello");
  await hears(["hello", "I heard: hello"]);
});
