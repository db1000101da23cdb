import { z } from "zod";
import { type FakeOpenAi, type FakeStep, startFakeOpenAi } from "../../test/support/fake-openai.ts";
import { now } from "./sockets.ts";

/** A model on this machine that answers at once and knows when it was called. */
export type TalkativeModel = {
  /** What an agent's config holds to use it. */
  config: { provider: "openai-compatible"; name: string; baseUrl: string };
  /** When it was called since the last `forget`, in milliseconds since the epoch; it begins to speak then. */
  calledAt: number[];
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
 * Says `deltas` with `send_message` whenever a person wrote, and nothing more after that. Where it is in no space yet
 * it first enters the one that the newest message came from.
 */
export const startTalkativeModel = async (deltas: string[]): Promise<TalkativeModel> => {
  const calledAt: number[] = [];
  const fake: FakeOpenAi = await startFakeOpenAi(({ body }) => {
    calledAt.push(now());
    return nextStep(z.array(Turn).parse(body.messages), deltas);
  });
  return {
    config: { provider: "openai-compatible", name: "talkative", baseUrl: fake.baseUrl },
    calledAt,
    forget: () => calledAt.splice(0),
    stop: () => fake.stop(),
  };
};

const nextStep = (turns: Turn[], deltas: string[]): FakeStep => {
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
