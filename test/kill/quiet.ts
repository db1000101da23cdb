import { setTimeout as wait } from "node:timers/promises";
import type { Agent } from "../../src/protocol/agent.ts";
import type { InboxItem } from "../../src/protocol/run.ts";
import type { House } from "../e2e/support/house.ts";
import { commandsIn } from "./commands.ts";
import type { Load, LoadedSpace } from "./load.ts";

/** Every agent has a try within 30 s of a crash, by itself; a run and a backoff may follow. */
const patienceMs = 75_000;
const lookEveryMs = 200;

/** True if nothing moves any more, as far as the clients see. Looking costs the server nothing. */
const isSettled = ({ people }: LoadedSpace): boolean =>
  people.every(({ sent, answeredAt, state }) => {
    const { outgoing, streams, connection, active } = state();
    const isOver = ({ text, acknowledgedAt, refused }: (typeof sent)[number]): boolean =>
      refused !== undefined || (acknowledgedAt !== undefined && commandsIn(text).every(({ id }) => answeredAt.has(id)));
    const isCalm = outgoing.length === 0 && streams.length === 0 && active.length === 0;
    return connection.status === "open" && isCalm && sent.every(isOver);
  });

const isIdle = async (house: House, agentId: string): Promise<boolean> => {
  const { agent } = await house.api.get<{ agent: Agent }>(`/v1/agents/${agentId}`);
  if (agent.activity?.state !== "idle") return false;
  const { items } = await house.api.get<{ items: InboxItem[] }>(`/v1/agents/${agentId}/inbox`);
  return items.every(({ wakes }) => !wakes);
};

/** Resolves when nothing moves any more; false where something still does after all patience. */
export const becomesQuiet = async (house: House, load: Load): Promise<boolean> => {
  const deadline = performance.now() + patienceMs;
  const until = async (met: () => boolean | Promise<boolean>): Promise<boolean> => {
    while (performance.now() < deadline) {
      if (await met()) return true;
      await wait(lookEveryMs);
    }
    return false;
  };
  const agents = load.spaces.flatMap((space) => space.agents);
  if (!(await until(() => load.spaces.every(isSettled)))) return false;
  for (const { id } of agents) if (!(await until(() => isIdle(house, id)))) return false;
  return until(() => load.spaces.every(isSettled));
};
