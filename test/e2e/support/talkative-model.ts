import * as z from "zod";
import { type FakeRequest, type FakeStep, startFakeOpenAi } from "../../support/fake-openai.ts";

/** A model on this machine that answers at once and knows when it was called. */
export type TalkativeModel = {
  /** What an agent's config holds to use it. */
  config: { provider: "openai-compatible"; name: string; baseUrl: string };
  /** When it was called since the last `forget`, in milliseconds since the epoch; it begins to speak then. */
  calledAt: number[];
  /** What it was sent last. */
  lastAsked(): FakeRequest["body"] | undefined;
  /** Forgets the calls and what they sent. */
  forget(): void;
  stop(): Promise<void>;
};

const Turn = z.looseObject({
  role: z.string(),
  content: z.unknown(),
  tool_calls: z.array(z.looseObject({ function: z.looseObject({ name: z.string() }) })).optional(),
});
type Turn = z.infer<typeof Turn>;

/**
 * A model's answer: it speaks `deltas` with `send_message` when somebody wrote, and nothing more after that. It goes by
 * what it is given alone. If it is in no space yet, it first enters the one that the message came from.
 */
export const converse = ({ body }: FakeRequest, deltas: string[]): FakeStep => {
  const turns = z.array(Turn).parse(body.messages);
  const called = (among: Turn[], name: string): boolean =>
    among.some((turn) => turn.tool_calls?.some((call) => call.function.name === name));
  const sinceAsked = turns.slice(turns.findLastIndex((turn) => turn.role === "user"));
  if (called(sinceAsked, "send_message")) return { text: "That was all." };
  if (called(turns, "enter_space")) {
    return { toolCalls: [{ name: "send_message", arguments: ['{"text":"', ...deltas, '"}'] }] };
  }
  const spaceId = /spc_[0-9A-Z]{34}/.exec(JSON.stringify(sinceAsked))?.[0] ?? "";
  return { toolCalls: [{ name: "enter_space", arguments: { spaceId } }] };
};

export const startTalkativeModel = async (deltas: string[]): Promise<TalkativeModel> => {
  const calledAt: number[] = [];
  let body: FakeRequest["body"] | undefined;
  const fake = await startFakeOpenAi((request) => {
    calledAt.push(performance.timeOrigin + performance.now());
    body = request.body;
    return converse(request, deltas);
  });
  return {
    config: { provider: "openai-compatible", name: "talkative", baseUrl: fake.baseUrl },
    calledAt,
    lastAsked: () => body,
    forget: () => {
      calledAt.length = 0;
      fake.requests.length = 0;
    },
    stop: () => fake.stop(),
  };
};
