import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { ApiError, createApi } from "./api.ts";
import type { Guest } from "./courier.ts";
import { stewardTools } from "./demo-tools.ts";

/** The ids of the demo's entities and spaces by name, and the workspace's secret key. Kept in a file between starts. */
type Remembered = { workspaceId: string; secretKey: string; ids: Record<string, string> };

export type Demo = {
  secretKey: string;
  /** `link` signs in to the page, once. */
  people: { name: string; id: string; link: string }[];
  spaces: { name: string; id: string }[];
  /** The agent whose program runs beside the server. */
  courier: Guest;
  seeded: boolean;
};

const people = ["Husam", "Sara"];
const tokenSeconds = 30 * 24 * 60 * 60;

/**
 * One of each of the four kinds: how it lives through its past, and whether it can reply and wait. One with tools, and a
 * guest.
 */
const agents = [
  {
    name: "Analyst",
    description: "Answers questions about figures, formally and to the point",
    instructions:
      "You are Analyst. You are formal and exact. You give figures with their units, say what you do not know, and never guess.",
  },
  {
    name: "Scout",
    continuity: "timeline",
    description: "Finds things out and reports in one cheerful line",
    instructions: "You are Scout. You are cheerful and brief: one short sentence is usually enough.",
  },
  {
    name: "Scribe",
    messaging: "threaded",
    description: "Keeps notes of what was decided and recalls them when asked",
    instructions:
      "You are Scribe. You keep notes: when something is decided or should be remembered, you store it; when asked, you recall it word for word. Otherwise you stay silent.",
  },
  {
    name: "Envoy",
    continuity: "timeline",
    messaging: "threaded",
    description: "Asks others on your behalf, waits for what they say, and reports it",
    instructions: "You are Envoy. You ask whom you are told to ask, wait for all of their answers, and report them.",
  },
  {
    name: "Steward",
    continuity: "timeline",
    description: "Deploys what people approve, has them choose and fill in forms, draws charts and tables",
    instructions:
      "You are Steward. You deploy only by the deploy tool, ask people with choose and form, and show figures with chart and table. You say what came of each.",
    tools: stewardTools,
  },
  {
    name: "Courier",
    runtime: "guest",
    description: "Knows where each parcel is, by its number",
  },
];

/** A visitor who addresses nobody is answered by one agent: that whose description fits best, or the first. */
const hosted = {
  wakePolicy: "addressed",
  router: {
    model: { provider: "rehearsal", deltasPerSecond: 0 },
    instructions:
      "Visitors try this space out: always wake one agent, the first of the list where no other fits better.",
  },
};

const spaces = [
  { name: "Town Square", members: ["Husam", "Sara", "Analyst", "Scout", "Scribe"], settings: hosted },
  { name: "Project Alpha", members: ["Husam", "Sara", "Analyst", "Scribe"], settings: hosted },
  { name: "Husam and Scout", members: ["Husam", "Scout"] },
  { name: "Errands", members: ["Husam", "Sara", "Scribe", "Envoy"], settings: hosted },
  { name: "Workshop", members: ["Husam", "Sara", "Steward"], settings: hosted },
  { name: "Deliveries", members: ["Husam", "Sara", "Courier"], settings: hosted },
  { name: "Help Desk", members: ["Husam", "Sara", "Analyst", "Scout", "Scribe"], settings: hosted },
];

/**
 * Sees to it that the workspace "Demo" is there, and answers with fresh sign-in links for its people. What exists is
 * remembered in `memoryFile` after every single step, so a seeding that was interrupted goes on where it was.
 */
export const seedDemo = async (url: string, adminKey: string, memoryFile: string): Promise<Demo> => {
  const known = existsSync(memoryFile) ? (JSON.parse(readFileSync(memoryFile, "utf8")) as Remembered) : undefined;
  const memory = known ?? (await createWorkspace(url, adminKey));
  const remember = (): void => writeFileSync(memoryFile, JSON.stringify(memory, null, 2), { mode: 0o600 });
  remember();
  const api = createApi(url, memory.secretKey);
  await api.get("/v1/workspace").catch(explainForeignData);

  let seeded = false;
  const ensure = async (name: string, create: () => Promise<string>): Promise<void> => {
    if (memory.ids[name]) return;
    memory.ids[name] = await create();
    seeded = true;
    remember();
  };
  const idOf = (name: string): string => {
    const id = memory.ids[name];
    if (!id) throw new Error(`${name} was not seeded`);
    return id;
  };
  for (const name of people) {
    await ensure(name, async () => {
      const { entity } = await api.post<{ entity: { id: string } }>("/v1/entities", { type: "human", name });
      return entity.id;
    });
  }
  for (const config of agents) {
    await ensure(config.name, async () => {
      const { agent } = await api.post<{ agent: { id: string } }>("/v1/agents", config);
      return agent.id;
    });
  }
  for (const { name, members, settings } of spaces) {
    await ensure(name, async () => {
      const body = { ...settings, name, members: members.map((member) => ({ entityId: idOf(member) })) };
      const { space } = await api.post<{ space: { id: string } }>("/v1/spaces", body);
      return space.id;
    });
  }
  const asked = { entityId: idOf("Courier"), expiresInSeconds: tokenSeconds };
  const { token } = await api.post<{ token: string }>("/v1/tokens", asked);
  return {
    secretKey: memory.secretKey,
    courier: { id: idOf("Courier"), token },
    seeded,
    spaces: spaces.map(({ name }) => ({ name, id: idOf(name) })),
    people: await Promise.all(
      people.map(async (name) => {
        const { link } = await api.post<{ link: string }>(`/v1/entities/${idOf(name)}/sign-in-links`, {});
        return { name, id: idOf(name), link };
      }),
    ),
  };
};

const createWorkspace = async (url: string, adminKey: string): Promise<Remembered> => {
  const operator = createApi(url, adminKey);
  const made = await operator.post<{ workspace: { id: string }; secretKey: string }>("/v1/workspaces", {
    name: "Demo",
  });
  return { workspaceId: made.workspace.id, secretKey: made.secretKey, ids: {} };
};

const explainForeignData = (error: unknown): never => {
  if (error instanceof ApiError && [401, 404].includes(error.status)) {
    const advice = "put back the .dev.vars that it was made with, or forget the data with: npm start -- --fresh";
    throw new Error(`the data in .wrangler/state was made with other keys: ${advice}`, { cause: error });
  }
  throw error;
};
