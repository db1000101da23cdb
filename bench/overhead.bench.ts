import { startTalkativeModel } from "../test/e2e/support/talkative-model.ts";
import type { Bench, Report } from "./support/figure.ts";
import { percentile } from "./support/figure.ts";
import { postJson, withRivals } from "./support/servers.ts";
import { closeSockets, type Listening, now, openSockets, whenAll } from "./support/sockets.ts";

/**
 * What Colloquy adds to a conversation, with a model that answers at once: from a person's POST to the model being
 * called, and from the model's first word to the first frame at a client. Held against a bare object that does one
 * insert and one broadcast: from the POST to the frame at its client.
 */
const rounds = 40;
const warmUps = 5;

const startsWords = ({ data }: { data: Buffer }): boolean => data.includes('"tool-input-delta"');
const has = (got: Listening, type: string): boolean => got.frames.some(({ data }) => data.includes(`"${type}"`));

const reportBoth = (report: Report, name: string, ours: number[], bare: number[]): void => {
  for (const [words, share] of [
    ["p50", 0.5],
    ["p99", 0.99],
  ] as const) {
    const [our, base] = [percentile(ours, share), percentile(bare, share)];
    report({ case: name, figure: `${words}, lower is better`, unit: "ms", ours: our, baseline: base });
    report({
      case: name,
      figure: `${words} more than the baseline, lower is better`,
      unit: "ms",
      ours: our - base,
      baseline: null,
    });
  }
};

export const bench: Bench = (report) =>
  withRivals(async ({ house, baseline }) => {
    const model = await startTalkativeModel(Array.from({ length: 20 }, (_, index) => `word${index} `));
    const person = await house.addPerson("Husam");
    const agentId = await house.addAgent({ name: "Echo", model: model.config });
    const spaceId = await house.addSpace("Overhead", [person.id, agentId]);
    const sockets = await openSockets(`${house.url}/v1/spaces/${spaceId}/stream?token=${person.token}`, 1);
    const bareSockets = await openSockets(`${baseline.url}/stream?name=overhead`, 1);
    const times = { toModel: [] as number[], toClient: [] as number[], bare: [] as number[] };
    for (let round = -warmUps; round < rounds; round += 1) {
      model.forget();
      for (const got of [...sockets, ...bareSockets]) got.frames.length = 0;

      const barePostedAt = now();
      const bareWhole = whenAll(bareSockets, (got) => got.frames.length > 0);
      await postJson(`${baseline.url}/post?name=overhead`, { text: `Round ${round}` });
      await bareWhole;

      const ended = whenAll(sockets, (got) => has(got, "run.completed"));
      const postedAt = now();
      await person.api.post(`/v1/spaces/${spaceId}/messages`, { text: `Round ${round}` });
      await ended;
      // The step that speaks is the last but one: the last says that all is said.
      const spokeAt = model.calledAt.at(-2) ?? Number.NaN;
      if (round < 0) continue;
      times.bare.push((bareSockets[0]?.frames[0]?.at ?? Number.NaN) - barePostedAt);
      times.toModel.push((model.calledAt[0] ?? Number.NaN) - postedAt);
      times.toClient.push((sockets[0]?.frames.find(startsWords)?.at ?? Number.NaN) - spokeAt);
    }
    reportBoth(report, "a person's POST to the model being called", times.toModel, times.bare);
    reportBoth(report, "the model's first word to the first frame at a client", times.toClient, times.bare);
    closeSockets([...sockets, ...bareSockets]);
    await model.stop();
    return [];
  });
