import type { Server } from "../scripts/server.ts";
import { startTalkativeModel } from "../test/e2e/support/talkative-model.ts";
import { startFakeOpenAi } from "../test/support/fake-openai.ts";
import type { Bench, Report } from "./support/figure.ts";
import { percentile } from "./support/figure.ts";
import { postJson, type Rivals, withRivals, withServer } from "./support/servers.ts";
import { closeSockets, type Listening, now, openSockets, whenAll } from "./support/sockets.ts";

/**
 * The time that Colloquy adds to a conversation, with a model that answers at once. First, the time from a person's
 * POST to the model being called. It is held against the packages alone (`bench/packaged`), which send a model as many
 * messages, bytes and tools. Second, the time from the model's first word to the first frame at a client. It is held
 * against a bare object that does one insert and one broadcast, from the POST to the frame. The POST's own answer is
 * held against the bare object's, in a space whose agent wakes and in one without agents.
 */
/** How many times the baseline's p50 ours may take; for the first frame, also how many times its p99. */
const most = { toModel: 1.6, toClient: 1, answer: 2, toClientP99: 2 };
/** Counting takes time of its own. */
const uncounted = { config: "bench/house/wrangler.toml" };
/** As many as a p99 needs to be more than the slowest round. */
const rounds = 300;
const warmUps = 5;

const startsWords = ({ data }: { data: Buffer }): boolean => data.includes('"tool-input-delta"');
const has = (got: Listening, type: string): boolean => got.frames.some(({ data }) => data.includes(`"${type}"`));

/** Reports both percentiles. Answers a bound that the p50 breaks. */
const reportBoth = (report: Report, name: string, ours: number[], bare: number[], mostTimes?: number): string[] => {
  for (const [words, share] of [
    ["p50", 0.5],
    ["p99", 0.99],
  ] as const) {
    const [our, base] = [percentile(ours, share), percentile(bare, share)];
    const bound = share === 0.5 && mostTimes ? `, at most ${mostTimes} times` : "";
    report({ case: name, figure: `${words}, lower is better${bound}`, unit: "ms", ours: our, baseline: base });
    report({
      case: name,
      figure: `${words} more than the baseline, lower is better`,
      unit: "ms",
      ours: our - base,
      baseline: null,
    });
  }
  const times = percentile(ours, 0.5) / percentile(bare, 0.5);
  if (mostTimes === undefined || times <= mostTimes) return [];
  return [`${name}: ${times.toFixed(2)} times the baseline's p50, more than ${mostTimes}`];
};

export const bench: Bench = (report) =>
  withServer("bench/packaged/wrangler.toml", (packaged) =>
    withRivals((rivals) => measure(report, { ...rivals, packaged }), uncounted),
  );

const measure = async (
  report: Report,
  { house, baseline, packaged }: Rivals & { packaged: Server },
): Promise<string[]> => {
  const model = await startTalkativeModel(Array.from({ length: 20 }, (_, index) => `word${index} `));
  let packagedCalled = Promise.withResolvers<number>();
  const packagedModel = await startFakeOpenAi(() => {
    packagedCalled.resolve(now());
    return { text: "Yes." };
  });
  const person = await house.addPerson("Husam");
  const agentId = await house.addAgent({ name: "Echo", model: model.config });
  const spaceId = await house.addSpace("Overhead", [person.id, agentId]);
  const quietId = await house.addSpace("Quiet", [person.id]);
  const sockets = await openSockets(`${house.url}/v1/spaces/${spaceId}/stream?token=${person.token}`, 1);
  const bareSockets = await openSockets(`${baseline.url}/stream?name=overhead`, 1);
  const times = {
    toModel: [] as number[],
    packagedToModel: [] as number[],
    toClient: [] as number[],
    answer: [] as number[],
    quietAnswer: [] as number[],
    bare: [] as number[],
    bareAnswer: [] as number[],
  };
  for (let round = -warmUps; round < rounds; round += 1) {
    // Kept requests would cost this process collections of 20 to 50 ms, just as it waits for the first frame.
    model.forget();
    packagedModel.requests.length = 0;
    for (const got of [...sockets, ...bareSockets]) got.frames.length = 0;

    const barePostedAt = now();
    const bareWhole = whenAll(bareSockets, (got) => got.frames.length > 0);
    await postJson(`${baseline.url}/post?name=overhead`, { text: `Round ${round}` });
    const bareAnsweredAt = now();
    await bareWhole;

    const asked = model.lastAsked();
    if (asked) {
      if (round === 1 - warmUps) await postJson(`${packaged.url}/tools`, asked.tools);
      packagedCalled = Promise.withResolvers<number>();
      const { messages } = asked;
      const asking = {
        url: packagedModel.baseUrl,
        messages: messages.length,
        bytes: JSON.stringify(messages).length,
      };
      const packagedAt = now();
      await postJson(`${packaged.url}/post`, { text: `Round ${round}`, asking });
      const packagedMs = (await packagedCalled.promise) - packagedAt;
      if (round >= 0) times.packagedToModel.push(packagedMs);
    }

    const quietPostedAt = now();
    await person.api.post(`/v1/spaces/${quietId}/messages`, { text: `Round ${round}` });
    const quietAnsweredAt = now();

    const ended = whenAll(sockets, (got) => has(got, "run.completed"));
    const postedAt = now();
    await person.api.post(`/v1/spaces/${spaceId}/messages`, { text: `Round ${round}` });
    const answeredAt = now();
    await ended;
    // The step that speaks is the last but one: the last says that all is said.
    const spokeAt = model.calledAt.at(-2) ?? Number.NaN;
    if (round < 0) continue;
    times.bare.push((bareSockets[0]?.frames[0]?.at ?? Number.NaN) - barePostedAt);
    times.bareAnswer.push(bareAnsweredAt - barePostedAt);
    times.answer.push(answeredAt - postedAt);
    times.quietAnswer.push(quietAnsweredAt - quietPostedAt);
    times.toModel.push((model.calledAt[0] ?? Number.NaN) - postedAt);
    times.toClient.push((sockets[0]?.frames.find(startsWords)?.at ?? Number.NaN) - spokeAt);
  }
  const firstFrame = "the model's first word to the first frame at a client";
  const { bare, bareAnswer, packagedToModel } = times;
  const broken = [
    ...reportBoth(report, "a person's POST to the model being called", times.toModel, packagedToModel, most.toModel),
    ...reportBoth(report, "the same, against a bare object", times.toModel, bare),
    ...reportBoth(report, firstFrame, times.toClient, bare, most.toClient),
    ...reportBoth(report, "a POST's own answer where an agent wakes", times.answer, bareAnswer, most.answer),
    ...reportBoth(report, "a POST's own answer where none does", times.quietAnswer, bareAnswer, most.answer),
  ];
  const p99Times = percentile(times.toClient, 0.99) / percentile(bare, 0.99);
  if (p99Times > most.toClientP99) {
    broken.push(`${firstFrame}: ${p99Times.toFixed(2)} times the baseline's p99, more than ${most.toClientP99}`);
  }
  closeSockets([...sockets, ...bareSockets]);
  await Promise.all([model.stop(), packagedModel.stop()]);
  return broken;
};
