import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Api, createApi } from "../../../scripts/api.ts";
import { newVapidKeys } from "../../../scripts/keys.ts";
import { freePort, type Server, startServer } from "../../../scripts/server.ts";

export type Person = {
  id: string;
  name: string;
  token: string;
  /** A new link, which opens the page as this person once. */
  link(): Promise<string>;
  /** With this person's token. */
  api: Api;
};

type Workspace = {
  workspaceId: string;
  secretKey: string;
  /** With the workspace's secret key. */
  api: Api;
  addPerson(name: string): Promise<Person>;
  /** Creates an agent and answers its id. */
  addAgent(config: { name: string } & Record<string, unknown>): Promise<string>;
  /** Creates a space with these members and answers its id. */
  addSpace(name: string, memberIds: string[]): Promise<string>;
};

/** A running house of its own: real workerd, its own data and keys, one workspace. */
export type House = Workspace & {
  url: string;
  /** Where its SQLite files are, until it is closed. */
  dataDirectory: string;
  /** The id of the process group that serves it now. */
  groupId(): number;
  adminKey: string;
  /** SIGKILL for every process of the server, then a new start on the same data and address. */
  crash(): Promise<void>;
  kill(): Promise<void>;
  /** Another secret signs and seals from the next start on; what the last two did is verified and opened. */
  rotate(): void;
  start(): Promise<void>;
  /** Ends the server and removes its data. */
  close(): Promise<void>;
};

const variables = {
  ADMIN_KEY: "end-to-end-admin-key",
  SIGNING_SECRET: "end-to-end-signing-secret-of-32-bytes",
  ENVIRONMENT: "development",
  RATE_LIMITS: "off",
  VAPID_KEYS: newVapidKeys(),
};

/** For agents whose test or bench names no limits: nobody reaches the bounds of a person or an hour. */
const roomyLimits = { maxTokensPerDay: 1_000_000_000, maxRunsPerHour: 100_000 };

/** A new workspace of the house that answers at `url`. */
export const openWorkspace = async (url: string): Promise<Workspace> => {
  type Made = { workspace: { id: string }; secretKey: string };
  const made = await createApi(url, variables.ADMIN_KEY).post<Made>("/v1/workspaces", { name: "Test" });
  const { workspace, secretKey } = made;
  const api = createApi(url, secretKey);
  return {
    workspaceId: workspace.id,
    secretKey,
    api,
    async addPerson(name) {
      const { entity } = await api.post<{ entity: { id: string } }>("/v1/entities", { type: "human", name });
      const asked = { entityId: entity.id, expiresInSeconds: 3600 };
      const { token } = await api.post<{ token: string }>("/v1/tokens", asked);
      const links = `/v1/entities/${entity.id}/sign-in-links`;
      const link = async () => (await api.post<{ link: string }>(links, {})).link;
      return { id: entity.id, name, token, link, api: createApi(url, token) };
    },
    async addAgent(config) {
      const limits = Object.assign({}, roomyLimits, config.limits);
      return (await api.post<{ agent: { id: string } }>("/v1/agents", { ...config, limits })).agent.id;
    },
    async addSpace(name, memberIds) {
      const members = memberIds.map((entityId) => ({ entityId }));
      return (await api.post<{ space: { id: string } }>("/v1/spaces", { name, members })).space.id;
    },
  };
};

export const openHouse = async (options: { config?: string; inspectorPort?: number } = {}): Promise<House> => {
  const dataDirectory = mkdtempSync(join(tmpdir(), "house-"));
  const port = await freePort();
  let rotations = 0;
  const ring: string[] = [];
  const launch = (): Promise<Server> => {
    const rotated = ring.length > 0 ? { SIGNING_SECRETS: ring.join(",") } : {};
    return startServer({
      ...{ dataDirectory, port, variables: { ...variables, ...rotated } },
      ...(process.env.HOUSE_OUTPUT ? { onOutput: console.log } : {}),
      ...options,
    });
  };
  let server = await launch();
  const { url } = server;
  const house: House = {
    url,
    dataDirectory,
    groupId: () => server.groupId,
    adminKey: variables.ADMIN_KEY,
    ...(await openWorkspace(url)),
    async crash() {
      await house.kill();
      await house.start();
    },
    kill: () => server.kill(),
    rotate() {
      rotations += 1;
      ring.unshift(`r${rotations}:${randomBytes(32).toString("base64url")}`);
      ring.splice(3);
    },
    async start() {
      server = await launch();
    },
    async close() {
      await server.stop();
      rmSync(dataDirectory, { recursive: true, force: true });
    },
  };
  return house;
};
