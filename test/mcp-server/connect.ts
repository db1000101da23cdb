import { exports } from "cloudflare:workers";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

/** An assistant's side of `/mcp`: the protocol's own client, over requests to this worker. */
export const revisions = ["2026-07-28", "2025-11-25"] as const;
export type Revision = (typeof revisions)[number];

export const connect = async (bearer: string, revision: Revision = "2026-07-28", query = "") => {
  const client = new Client(
    { name: "test", version: "1" },
    { versionNegotiation: { mode: revision === "2026-07-28" ? "auto" : "legacy" } },
  );
  const transport = new StreamableHTTPClientTransport(new URL(`https://colloquy.test/mcp${query}`), {
    fetch: (url, init) => exports.default.fetch(new Request(url, init)),
    requestInit: { headers: { authorization: `Bearer ${bearer}` } },
  });
  await client.connect(transport);
  /** What a tool answers: its JSON, or the code of its refusal. */
  const call = async (name: string, input: Record<string, unknown> = {}) => {
    const { content, isError } = await client.callTool({ name, arguments: input });
    const [part] = content;
    if (part?.type !== "text") throw new Error(`${name} answers with a ${part?.type}`);
    return { isError: isError === true, json: JSON.parse(part.text) };
  };
  return { client, call };
};
