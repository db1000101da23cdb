import { env } from "cloudflare:workers";
import type { Message } from "../../src/protocol/message.ts";
import type { EntityRef } from "../../src/protocol/rpc.ts";
import type { Run } from "../../src/protocol/run.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { inboxOf, type openHouse, runsOf } from "../agent/fixture.ts";

/** What a house has come to, without ids and times: two houses in which the same happened are equal. */
export type Aftermath = {
  spaces: { name: string; members: string[]; messages: RecordedMessage[] }[];
  agents: { name: string; inbox: number; runs: object[]; memories: string[]; plans: string[]; reserved: number }[];
  /** Requests that a tool's server got. */
  effects: number;
  /** What endpoints' servers handle who remember ids, in order; and how the spaces stand for people who look. */
  endpoints: string[][];
  lines: object[];
};
type RecordedCall = { name: string; status: string; output?: string; error?: string; [field: string]: unknown };
type RecordedMessage = { from: string; text?: string; toolCall?: RecordedCall; [field: string]: unknown };

export type Space = Awaited<ReturnType<Awaited<ReturnType<typeof openHouse>>["space"]>>;

const toolCallOf = ({
  name,
  input,
  output,
  status,
  error,
  awaits,
}: NonNullable<Message["toolCall"]>): RecordedCall => ({
  ...{ name, input, status },
  ...(output === undefined ? {} : { output: JSON.stringify(output).includes("outcome_unknown") ? "unknown" : "given" }),
  ...(error ? { error: error.code } : {}),
  ...(awaits ? { awaited: awaits.answers.map(({ name: who, approved }) => [who, approved]) } : {}),
});

const spaceRecord = async (workspaceId: string, space: Space): Promise<Aftermath["spaces"][number]> => {
  const key = { kind: "key", workspaceId, keyId: "key" } as const;
  const { name, members = [] } = unwrap(await space.stub().describe(key));
  const messages = await space.messages();
  const places = new Map(messages.map(({ id }, place) => [id, place]));
  const names = new Map(members.map(({ id, name: who }) => [id, who]));
  const recorded = messages.map(async (message): Promise<RecordedMessage> => {
    const { id, kind, sender, text, toolCall, replyTo, mentions, origin, expectsReply } = message;
    const reads = unwrap(await space.stub().reads(key, id)).map(({ name: who, outcome, reason }) =>
      `${who} ${outcome ?? ""} ${reason ?? ""}`.trim(),
    );
    const routing = await space.stub().routing(key, id);
    return {
      from: sender.name,
      kind,
      ...(text === undefined ? {} : { text }),
      ...(toolCall ? { toolCall: toolCallOf(toolCall) } : {}),
      ...(replyTo === undefined ? {} : { replyTo: places.get(replyTo) }),
      ...(mentions ? { mentions: mentions.map((each) => names.get(each)) } : {}),
      ...(origin
        ? { origin: { ...origin, spaceId: "of a space", messageId: "of a message", sourceRunId: "of a run" } }
        : {}),
      ...(expectsReply ? { expectsReply } : {}),
      ...(routing.ok ? { routed: [routing.value.outcome, routing.value.agents.map((each) => names.get(each))] } : {}),
      reads: reads.sort(),
    };
  });
  return { name, members: members.map(({ name: who }) => who).sort(), messages: await Promise.all(recorded) };
};

const runRecord = ({ status, outcome, error, trigger }: Run): object => ({
  status,
  outcome,
  trigger: trigger.type,
  ...(error ? { error: error.code } : {}),
});

const agentRecord = async (
  workspaceId: string,
  agent: EntityRef,
  reserved: number,
): Promise<Aftermath["agents"][number]> => {
  const stub = env.AGENT.getByName(agent.id);
  return {
    name: agent.name,
    inbox: (await inboxOf(workspaceId, agent)).length,
    runs: (await runsOf(workspaceId, agent)).reverse().map(runRecord),
    memories: unwrap(await stub.memories(workspaceId)).map(({ key, value }) => `${key}: ${value}`),
    plans: unwrap(await stub.plans(workspaceId)).map(({ name, status }) => `${name}: ${status}`),
    reserved,
  };
};

export const aftermathOf = async (
  workspaceId: string,
  house: { spaces: Space[]; agents: (EntityRef & { reserved: number })[] } & Omit<Aftermath, "spaces" | "agents">,
): Promise<Aftermath> => ({
  ...house,
  spaces: await Promise.all(house.spaces.map((space) => spaceRecord(workspaceId, space))),
  agents: await Promise.all(house.agents.map((agent) => agentRecord(workspaceId, agent, agent.reserved))),
});
