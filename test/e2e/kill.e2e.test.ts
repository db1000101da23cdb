import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { ServerFrame } from "../../src/protocol/events.ts";
import type { Message } from "../../src/protocol/message.ts";
import type { Run } from "../../src/protocol/run.ts";
import type { FakeStep } from "../support/fake-openai.ts";
import { houseForFile, modelForFile } from "./support/for-file.ts";
import type { Person } from "./support/house.ts";
import { type Listener, listen } from "./support/listener.ts";
import { converse } from "./support/talkative-model.ts";

/**
 * A power cut in the middle of conversations: SIGKILL for every process of the server, once, while several agents are
 * each at another point of their answer. Then a new start on the same data, and nothing else: nobody asks again.
 */
const words = Array.from({ length: 60 }, (_, index) => `word${index} `);
const answer = words.join("");

/** The model's own words, unless a step below says what befalls it. */
const speak = (more: Partial<FakeStep>): FakeStep => ({
  toolCalls: [{ name: "send_message", arguments: ['{"text":"', ...words, '"}'] }],
  ...more,
});

type Moment = {
  name: string;
  /** The model's steps after it has entered the space; beyond them it simply answers. */
  steps: FakeStep[];
  /** Whether the agent is where it shall be when the power goes. Left out: its person asks at the very last. */
  reached?(frames: ServerFrame[], calls: number): boolean;
};

const told = (frames: ServerFrame[]): string =>
  frames.map((frame) => (frame.type === "tool-input-delta" ? (frame.textDelta ?? "") : "")).join("");
const messages = (frames: ServerFrame[]): Message[] =>
  frames.flatMap((frame) => (frame.type === "space.message" ? [frame.message] : []));
const fromAgent = (frames: ServerFrame[]): Message[] =>
  messages(frames).filter(({ sender }) => sender.type === "agent");

const moments: Moment[] = [
  { name: "when a person's message was accepted just now", steps: [] },
  {
    name: "before the model's first word",
    steps: [speak({ stallAfter: 0 })],
    reached: (_, calls) => calls === 2,
  },
  {
    name: "in the middle of its message",
    steps: [speak({ stallAfter: 30 })],
    reached: (frames) => told(frames).includes("word20"),
  },
  {
    name: "when its message is said but its run is not over",
    steps: [speak({}), { text: "That was all.", stallAfter: 0 }],
    reached: (frames, calls) => fromAgent(frames).length === 1 && calls === 3,
  },
];

type Scene = { moment: Moment; model: string; person: Person; agentId: string; spaceId: string; listener: Listener };

const [house, fake] = await Promise.all([houseForFile(), modelForFile((request) => converse(request, words))]);
const scenes: Scene[] = [];

const setScene = async (moment: Moment, index: number): Promise<Scene> => {
  const model = `model-${index}`;
  const person = await house.addPerson(`Husam ${index}`);
  const config = { provider: "openai-compatible", name: model, baseUrl: fake.baseUrl };
  const agentId = await house.addAgent({ name: `Nova ${index}`, model: config });
  const spaceId = await house.addSpace(`Scene ${index}`, [person.id, agentId]);
  const enter = { toolCalls: [{ name: "enter_space", arguments: { spaceId } }] };
  if (moment.reached) fake.script([enter, ...moment.steps], model);
  return { moment, model, person, agentId, spaceId, listener: await listen(house.url, spaceId, person.token) };
};

const callsOf = (model: string): number => fake.requests.filter((request) => request.model === model).length;
const cursorOf = (frames: ServerFrame[]): number =>
  Math.max(...frames.map((frame) => ("cursor" in frame ? frame.cursor : 0)));

const ask = ({ person, spaceId }: Scene): Promise<unknown> =>
  person.api.post(`/v1/spaces/${spaceId}/messages`, { text: "What is new?" });

beforeAll(async () => {
  for (const [index, moment] of moments.entries()) scenes.push(await setScene(moment, index));
  const early = scenes.filter(({ moment }) => moment.reached);
  await Promise.all(early.map(ask));
  for (const { moment, model, listener } of early) {
    const there = (): boolean => moment.reached?.(listener.frames, callsOf(model)) ?? true;
    await vi.waitUntil(there, { timeout: 30_000, interval: 20 });
  }
  await Promise.all(scenes.filter(({ moment }) => !moment.reached).map(ask));
  await house.kill();
  await Promise.all(scenes.map(({ listener }) => listener.closed));
  await house.start();
});

afterAll(() => {
  for (const { listener } of scenes) listener.close();
});

describe.each(moments.map((moment, index) => [moment.name, index] as const))("SIGKILL %s", (_, index) => {
  test("[D3] [D4] [R1] [R2] the agent answers once by itself, with no half message left", async () => {
    const scene = scenes[index];
    if (!scene) throw new Error("the scene was not set");
    const { person, spaceId, agentId, listener: before } = scene;
    const after = await listen(house.url, spaceId, person.token, cursorOf(before.frames));
    const [welcome] = after.frames;
    const streams = welcome?.type === "welcome" ? welcome.streams : [];
    for (const stream of streams) expect(answer.startsWith(stream.text)).toBe(true);

    const { runs } = await committed(scene);
    expect(runs.filter((run) => run.status === "completed")).toHaveLength(1);
    expect(runs).toHaveLength(1);
    await after.until("the agent's message", (frames) => fromAgent([...before.frames, ...frames]).length > 0);
    after.close();

    const page = await person.api.get<{ items: Message[] }>(`/v1/spaces/${spaceId}/messages`);
    expect(page.items.map(({ text }) => text)).toEqual(["What is new?", answer]);
    const live = fromAgent([...before.frames, ...after.frames]);
    expect(live.map(({ text }) => text)).toEqual([answer]);
    const inbox = await house.api.get<{ items: unknown[] }>(`/v1/agents/${agentId}/inbox`);
    expect(inbox.items).toEqual([]);
  });
});

/** The agent's runs, once none is under way and its inbox is empty. */
const committed = async ({ agentId }: Scene): Promise<{ runs: Run[] }> =>
  vi.waitFor(
    async () => {
      const { items: runs } = await house.api.get<{ items: Run[] }>(`/v1/agents/${agentId}/runs`);
      if (runs.length === 0 || runs.some((run) => run.status === "running")) throw new Error("a run is under way");
      return { runs };
    },
    { timeout: 45_000, interval: 200 },
  );
