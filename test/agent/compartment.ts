import { env } from "cloudflare:workers";
import { compartmentId } from "../../src/shared/ids.ts";
import { type AgentSettings, ended, ids, openScene, rowsIn, runsOf } from "./fixture.ts";

/** A confidential space of the scene's person and agent, and the agent's compartment for it. */
export const openCompartment = async (
  { house, analyst, husam }: Pick<Awaited<ReturnType<typeof openScene>>, "house" | "analyst" | "husam">,
  name: string,
) => {
  const { workspaceId } = house;
  const space = await house.space(name, [husam, analyst], true);
  const mind = { ...analyst, id: compartmentId(ids, analyst.id, space.id) };
  const tell = (text: string) => space.post(husam, text);
  return {
    ...{ mind, space, tell },
    stub: () => env.AGENT.getByName(mind.id),
    runs: () => runsOf(workspaceId, mind),
    /** Waits until it has ended so many runs in all. */
    ended: (count: number) => ended(workspaceId, mind, count),
    ask: async (text: string, count: number) => {
      await tell(text);
      return ended(workspaceId, mind, count);
    },
  };
};

/** An agent with an open space, and a compartment of another one. */
export const openBoth = async (settings: Partial<AgentSettings>) => {
  const scene = await openScene(settings);
  return { ...scene, secret: await openCompartment(scene, "Board") };
};

/** Every row of every table of an agent, its timers aside: they fire by themselves. */
export const dumpOf = async (agent: { id: string }): Promise<Record<string, unknown[]>> => {
  const named = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_%' ESCAPE '\\'";
  const names = (await rowsIn(agent, named)).map(({ name }) => String(name)).filter((name) => name !== "timers");
  return Object.fromEntries(
    await Promise.all(names.map(async (name) => [name, await rowsIn(agent, `SELECT * FROM "${name}"`)] as const)),
  );
};
