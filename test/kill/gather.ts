import type { Api } from "../../scripts/api.ts";
import type { Agent } from "../../src/protocol/agent.ts";
import type { Message } from "../../src/protocol/message.ts";
import type { InboxItem, Run } from "../../src/protocol/run.ts";
import type { House } from "../e2e/support/house.ts";
import type { AgentEvidence, Evidence, SpaceEvidence } from "./evidence.ts";
import type { Load, LoadedAgent, LoadedSpace } from "./load.ts";
import { type Note, statusOf } from "./taken-away.ts";

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

const spaceEvidence = async (api: Api, load: Load, space: LoadedSpace, notes: Note[]): Promise<SpaceEvidence> => {
  const agents: AgentEvidence[] = [];
  for (const agent of space.agents) agents.push(await agentEvidence(api, load, agent));
  return {
    id: space.id,
    name: space.name,
    notes,
    log: await logOf(api, space.id),
    agents,
    clients: space.people.map(({ sent, saw, wire, state }) => {
      const { messages, streams, outgoing } = state();
      const shows = messages.map(({ id }) => id);
      return { sent, saw, shows, openStreams: streams.length, waiting: outgoing.length, wire };
    }),
  };
};

/** `notes` of each space; left out, nobody visited them. */
export const gather = async (house: House, load: Load, notes?: Note[][]): Promise<Evidence> => {
  const spaces: SpaceEvidence[] = [];
  const signedOut: number[] = [];
  for (const [index, space] of load.spaces.entries()) {
    spaces.push(await spaceEvidence(house.api, load, space, notes?.[index] ?? []));
    if (notes) signedOut.push(await statusOf(house, space.visitor));
  }
  const followers = (await load.followers?.settle(spaces)) ?? { lines: [], receivers: [] };
  return { spaces, payments: load.desk.requests, signedOut, unsealed: load.desk.withoutSecret(), followers };
};
