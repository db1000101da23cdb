import { env } from "cloudflare:workers";
import { onTestFinished, vi } from "vitest";
import type { McpStatus } from "../../../src/protocol/tool.ts";
import { unwrap } from "../../../src/shared/errors.ts";
import type { TestMcpServer, TestTool } from "../../support/mcp-server.ts";
import { ended, openHouse } from "../fixture.ts";

/** An agent with one MCP server named desk, on a network that the test makes up. */
export const url = "http://localhost:4000/mcp";
export const config = (more: object = {}) => ({
  servers: [{ name: "desk", url, headers: {}, timeoutMs: 5000, ...more }],
});

/** The network until the test ends, with these servers in it and nobody else. */
export const network = (servers: Record<string, Pick<TestMcpServer, "fetch">>) => {
  vi.stubGlobal("fetch", async (address: string, init?: RequestInit) => {
    const server = servers[new URL(address).origin];
    if (!server) throw new TypeError("fetch failed");
    return server.fetch(new Request(address, init));
  });
  onTestFinished(() => void vi.unstubAllGlobals());
};

export const shout: TestTool = {
  name: "shout",
  description: "Says it louder.",
  answer: ({ text: words = "" }) => words.toUpperCase(),
};

export const stage = async (mcp: ReturnType<typeof config>) => {
  const house = await openHouse();
  const husam = await house.person("Husam");
  const nova = await house.agent({ name: "Nova", mcp });
  const space = await house.space("Alpha", [husam, nova]);
  const agent = env.AGENT.getByName(nova.id);
  const status = async (): Promise<McpStatus | undefined> => unwrap(await agent.describe(house.workspaceId)).mcp?.[0];
  /** The `nth` run once it has ended, with the results of its calls. */
  const outcome = async (nth = 1) => {
    const run = (await ended(house.workspaceId, nova, nth))[nth - 1];
    if (!run) throw new Error("no run");
    const { steps } = unwrap(await agent.run(house.workspaceId, run.id));
    return { run, results: steps.flatMap(({ toolCalls }) => toolCalls.map((made) => made.output ?? made)) };
  };
  return {
    house,
    husam,
    nova,
    space,
    agent,
    status,
    outcome,
    /** Has a person say something, and answers the run that it begins, the `nth`. */
    ask: async (nth = 1) => {
      await space.post(husam, "Do it");
      return outcome(nth);
    },
    until: (state: McpStatus["state"]) =>
      vi.waitFor(
        async () => {
          const now = await status();
          if (now?.state !== state) throw new Error(JSON.stringify(now));
          return now;
        },
        { timeout: 5000, interval: 20 },
      ),
  };
};

export const open = (server: TestMcpServer) => network({ "http://localhost:4000": server });
