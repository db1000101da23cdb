import type { Api } from "../../scripts/api.ts";
import type { Agent } from "../../src/protocol/agent.ts";
import type { Message } from "../../src/protocol/message.ts";
import type { InboxItem, Run } from "../../src/protocol/run.ts";
import type { House } from "../e2e/support/house.ts";
import type { Load, LoadedAgent, LoadedSpace } from "./load.ts";
import type { Sent } from "./person.ts";
import type { Payment } from "./refund-desk.ts";
import type { Wire } from "./wire.ts";

/** All that is known when everything is quiet, as plain data: from the API, from the clients, and from who was called. */
export type ClientEvidence = {
  sent: Sent[];
  saw: string[];
  /** What the SDK shows at last. */
  shows: string[];
  openStreams: number;
  waiting: number;
  wire: Wire;
};

export type AgentEvidence = {
  id: string;
  name: string;
  continuity: "consciousness" | "timeline";
  state: string;
  runs: Run[];
  inbox: InboxItem[];
  /** The messages in each input that its model was given: one list for each inbox message or trigger. */
  read: string[][];
};

export type SpaceEvidence = { name: string; log: Message[]; clients: ClientEvidence[]; agents: AgentEvidence[] };

export type Evidence = { spaces: SpaceEvidence[]; payments: Payment[] };

type Page<T> = { items: T[]; nextCursor: string | null };

const allOf = async <T>(api: Api, path: string): Promise<T[]> => {
  const items: T[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const page: Page<T> = await api.get(
      `${path}?limit=100${cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`}`,
    );
    items.push(...page.items);
    cursor = page.nextCursor;
  }
  return items;
};

const logOf = async (api: Api, spaceId: string): Promise<Message[]> => {
  const log: Message[] = [];
  for (;;) {
    const after = log.at(-1)?.seq ?? 0;
    const { items } = await api.get<Page<Message>>(`/v1/spaces/${spaceId}/messages?after=${after}&limit=200`);
    if (items.length === 0) return log;
    log.push(...items);
  }
};

const agentEvidence = async (api: Api, load: Load, agent: LoadedAgent): Promise<AgentEvidence> => {
  const at = `/v1/agents/${agent.id}`;
  const read = load.readings.filter((reading) => reading.agent === agent.name);
  return {
    ...agent,
    state: (await api.get<{ agent: Agent }>(at)).agent.activity?.state ?? "unknown",
    runs: await allOf<Run>(api, `${at}/runs`),
    inbox: await allOf<InboxItem>(api, `${at}/inbox`),
    read: read.map(({ messageIds }) => messageIds),
  };
};

const spaceEvidence = async (api: Api, load: Load, space: LoadedSpace): Promise<SpaceEvidence> => {
  const agents: AgentEvidence[] = [];
  for (const agent of space.agents) agents.push(await agentEvidence(api, load, agent));
  return {
    name: space.name,
    log: await logOf(api, space.id),
    agents,
    clients: space.people.map(({ sent, saw, wire, state }) => {
      const { messages, streams, outgoing } = state();
      const shows = messages.map(({ id }) => id);
      return { sent, saw, shows, openStreams: streams.length, waiting: outgoing.length, wire };
    }),
  };
};

export const gather = async (house: House, load: Load): Promise<Evidence> => {
  const spaces: SpaceEvidence[] = [];
  for (const space of load.spaces) spaces.push(await spaceEvidence(house.api, load, space));
  return { spaces, payments: load.desk.requests };
};
