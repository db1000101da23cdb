import { setTimeout as pause } from "node:timers/promises";
import { type House, openHouse, type Person } from "../test/e2e/support/house.ts";
import { type FakeOpenAi, type FakeStep, startFakeOpenAi } from "../test/support/fake-openai.ts";
import { type Bench, percentile } from "./support/figure.ts";
import { residentMiB } from "./support/resident.ts";
import { postJson } from "./support/servers.ts";
import { closeSockets, type Listening, now, openSockets, whenAll } from "./support/sockets.ts";

/**
 * Ten thousand runs that wait for a person, a thousand of each of ten agents. What they hold in memory once their
 * objects sleep is held against the same house without them, after the same work. How long an answer takes to the model
 * that goes on with it is held against a plain message. The runs that are answered were made by asking; the others are
 * copies of one of them, in SQLite.
 */
const agents = 10;
const asked = 6;
const waitingEach = 1000;
const warmUps = 1;
const mostMemory = 1.1;
const mostLatency = 2;
/** Longer than an object stays awake with nothing to do. */
const asleepMs = 25_000;
const samples = 5;

type Desk = { agentId: string; spaceId: string; person: Person; sockets: Listening[]; callIds: string[] };
type Model = { fake: FakeOpenAi; calledAt: number[]; asks: boolean };

const tool = {
  name: "confirm",
  description: "Asks a person",
  executionType: "space",
  inputSchema: { type: "object", properties: { question: { type: "string" } } },
  answer: { expiresInMinutes: 30 * 24 * 60 },
};

const startModel = async (): Promise<Model> => {
  const calledAt: number[] = [];
  const step = (): FakeStep => {
    calledAt.push(now());
    return model.asks
      ? { toolCalls: [{ name: "confirm", arguments: { question: "Shall I?" } }] }
      : { text: "So be it." };
  };
  const model: Model = { fake: await startFakeOpenAi(step), calledAt, asks: false };
  return model;
};

const openDesk = async (house: House, model: Model, index: number): Promise<Desk> => {
  const person = await house.addPerson(`Husam ${index}`);
  const agentId = await house.addAgent({
    name: `Clerk ${index}`,
    continuity: "timeline",
    model: { provider: "openai-compatible", name: "asking", baseUrl: model.fake.baseUrl },
    tools: [tool],
  });
  const spaceId = await house.addSpace(`Desk ${index}`, [person.id, agentId]);
  return { agentId, spaceId, person, sockets: [], callIds: [] };
};

const has = (got: Listening, type: string): boolean => got.frames.some(({ data }) => data.includes(`"${type}"`));

const watch = async (house: House, desk: Desk): Promise<void> => {
  const { spaceId, person } = desk;
  desk.sockets = await openSockets(`${house.url}/v1/spaces/${spaceId}/stream?token=${person.token}`, 1);
};

/** Does what wakes the agent, and waits until its run has come to `state`. Answers how long until the model was called. */
const timed = async (model: Model, desk: Desk, state: string, wake: () => Promise<unknown>): Promise<number> => {
  model.calledAt.length = 0;
  for (const got of desk.sockets) got.frames.length = 0;
  const there = whenAll(desk.sockets, (got) => has(got, state));
  const from = now();
  await wake();
  await there;
  return (model.calledAt[0] ?? Number.NaN) - from;
};

const say = ({ person, spaceId }: Desk, text: string): Promise<unknown> =>
  person.api.post(`/v1/spaces/${spaceId}/messages`, { text });

const answer = (desk: Desk): Promise<unknown> => {
  const toolCallId = desk.callIds.shift() ?? "";
  return desk.person.api.post(`/v1/spaces/${desk.spaceId}/tool-calls/${toolCallId}/result`, { result: { ok: true } });
};

/** Memory of a restarted server, after each agent and each space was awake and sleeps again. */
const memoryAsleep = async (house: House, model: Model, desks: Desk[]): Promise<number> => {
  await house.crash();
  for (const desk of desks) {
    await watch(house, desk);
    await timed(model, desk, "run.completed", () => say(desk, "Good morning"));
    closeSockets(desk.sockets);
  }
  await pause(asleepMs);
  const taken: number[] = [];
  for (let sample = 0; sample < samples; sample += 1) {
    taken.push(residentMiB());
    await pause(1000);
  }
  return percentile(taken, 0.5);
};

const latencies = async (house: House, model: Model, desks: Desk[], rounds: number) => {
  const times = { plain: [] as number[], answered: [] as number[] };
  for (const desk of desks) await watch(house, desk);
  for (let round = -warmUps; round < rounds; round += 1) {
    for (const desk of desks) {
      const plain = await timed(model, desk, "run.completed", () => say(desk, `Round ${round}`));
      if (round >= 0) times.plain.push(plain);
      if (desk.callIds.length === 0) continue;
      const answered = await timed(model, desk, "run.completed", () => answer(desk));
      if (round >= 0) times.answered.push(answered);
    }
  }
  for (const desk of desks) closeSockets(desk.sockets);
  return times;
};

const fill = async (house: House, model: Model, desks: Desk[]): Promise<void> => {
  model.asks = true;
  for (const desk of desks) {
    await watch(house, desk);
    for (let run = 0; run <= asked; run += 1) {
      await timed(model, desk, "run.waiting_tool", () => say(desk, "Ask me"));
      const shown = desk.sockets.flatMap(({ frames }) =>
        frames.flatMap(({ data }) => /"toolCall":\{"id":"(tc_\w+)"/.exec(data.toString())?.[1] ?? []),
      );
      // The last is what the copies are made of.
      if (run < asked) desk.callIds.push(shown[0] ?? "");
    }
    closeSockets(desk.sockets);
    const { agentId, spaceId } = desk;
    await postJson(`${house.url}/bench/waiting`, { agentId, spaceId, copies: waitingEach - asked - 1 });
  }
  model.asks = false;
};

export const bench: Bench = async (report) => {
  const model = await startModel();
  const house = await openHouse({ config: "bench/edge/wrangler.toml" });
  try {
    const desks: Desk[] = [];
    for (let index = 0; index < agents; index += 1) desks.push(await openDesk(house, model, index));
    const memoryBefore = await memoryAsleep(house, model, desks);
    const before = await latencies(house, model, desks, asked - warmUps);
    await fill(house, model, desks);
    const memory = await memoryAsleep(house, model, desks);
    const waiting = await latencies(house, model, desks, asked - warmUps);

    const of = `${agents * waitingEach} waiting runs`;
    report({
      case: `${of}, asleep: memory of workerd`,
      figure: `at most ${mostMemory} of none`,
      unit: "MiB",
      ours: memory,
      baseline: memoryBefore,
    });
    const [answered, plain] = [percentile(waiting.answered, 0.5), percentile(waiting.plain, 0.5)];
    report({
      case: `${of}: a person's answer to the model going on`,
      figure: `p50, at most ${mostLatency} of a plain message's`,
      unit: "ms",
      ours: answered,
      baseline: plain,
    });
    report({
      case: `${of}: a plain message to the model being called, against none waiting`,
      figure: "p50, lower is better",
      unit: "ms",
      ours: plain,
      baseline: percentile(before.plain, 0.5),
    });
    return [
      ...(memory <= mostMemory * memoryBefore
        ? []
        : [`memory: ${memory} MiB are more than ${mostMemory} of ${memoryBefore}`]),
      ...(answered < mostLatency * plain
        ? []
        : [`latency: ${answered} ms are no less than ${mostLatency} of ${plain}`]),
    ];
  } finally {
    await house.close();
    await model.fake.stop();
  }
};
