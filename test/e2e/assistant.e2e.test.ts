import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { expect, onTestFinished, test } from "vitest";
import type { Message } from "../../src/protocol/message.ts";
import { houseForFile } from "./support/for-file.ts";

/** docs/mcp-server.md as a new user follows it: its commands, and its config in the protocol's own client. */
const house = await houseForFile();
const page = readFileSync(new URL("../../docs/mcp-server.md", import.meta.url), "utf8");
const guestPart = page.slice(page.indexOf("## As a guest agent"), page.indexOf("## With the workspace's own sign-in"));

/** The commands of the page, with what stands for this house and these ids. */
const run = async <Answer>(command: string, ids: Record<string, string>): Promise<Answer> => {
  const known: Record<string, string> = { "https://HOST": house.url, "sk_…": house.secretKey, ...ids };
  const text = Object.entries(known).reduce((whole, [word, value]) => whole.replaceAll(word, value), command);
  const { stdout } = await promisify(execFile)("bash", ["-c", text.replace("curl ", "curl -s ")]);
  return JSON.parse(stdout);
};
const commands = (guestPart.match(/curl [^`]*?(?=\n\s*(?:curl|```))/g) ?? []).map((text) =>
  text.replaceAll(/\s*\\\n\s*/g, " "),
);

/** A client that has read the config of the page, and nothing else. */
const connect = async (token: string) => {
  const json = /```json\n([\s\S]*?)```/.exec(page)?.[1] ?? "";
  const { mcpServers } = JSON.parse(json.replace("https://HOST", house.url).replace("TOKEN", token));
  const { url, headers } = mcpServers.colloquy;
  const client = new Client({ name: "any", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
  onTestFinished(() => client.close());
  const call = async (name: string, input: Record<string, unknown> = {}) => {
    const { content, isError } = await client.callTool({ name, arguments: input });
    const [part] = content;
    if (part?.type !== "text" || isError) throw new Error(JSON.stringify(content));
    return JSON.parse(part.text);
  };
  return { client, call };
};

test("[M4] [M8] any client reads, is woken, answers, and asks for an approval", async () => {
  const mona = await house.addPerson("Mona");
  const spaceId = await house.addSpace("Desk", [mona.id]);
  const [make, join, mint] = commands;
  const { agent } = await run<{ agent: { id: string } }>(make ?? "", {});
  const ids = { "ent_…": agent.id, "spc_…": spaceId };
  await run(join ?? "", ids);
  const { token } = await run<{ token: string }>(mint ?? "", ids);
  const ship = { name: "ship", description: "Ships a parcel", executionType: "internal", approval: {} };
  const tools = [{ ...ship, output: { shipped: true } }];
  await house.api.patch(`/v1/agents/${agent.id}`, { tools });

  const { client, call } = await connect(token);
  expect(client.getInstructions()).toContain("next_events");
  const names = (await client.listTools()).tools.map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(["next_events", "read_messages", "send_message", "ship", "complete"]));
  const woken = call("next_events");
  await mona.api.post(`/v1/spaces/${spaceId}/messages`, { text: "Please ship parcel 7" });
  const { claim, events } = await woken;
  expect(JSON.stringify(events)).toContain("Please ship parcel 7");
  const read = await call("read_messages", { claim, input: { spaceId } });
  expect(read.call.output.messages).toMatchObject([{ content: "Please ship parcel 7" }]);
  await call("send_message", { claim, input: { text: "I ask for leave." } });
  expect((await call("ship", { claim, input: { parcel: 7 } })).call.status).toBe("waiting");

  const person = await connect(mona.token);
  const { items } = await person.call("needs_you");
  const { toolCall } = items.find((each: Message) => each.toolCall?.name === "ship");
  const { shown, inputHash } = toolCall.awaits;
  await person.call("answer", { spaceId, toolCallId: toolCall.id, approved: true, shown, inputHash });

  const next = await call("next_events");
  const done = next.run.steps.flatMap(({ toolCalls }: { toolCalls: unknown[] }) => toolCalls);
  expect(done).toContainEqual(expect.objectContaining({ name: "ship", status: "complete", output: { shipped: true } }));
  await call("send_message", { claim: next.claim, input: { text: "Shipped." } });
  expect((await call("complete", { claim: next.claim, summary: "shipped 7" })).run.status).toBe("completed");
  const { items: said } = await mona.api.get<{ items: Message[] }>(`/v1/spaces/${spaceId}/messages`);
  expect(said.filter(({ kind }) => kind === "text").map(({ text }) => text)).toEqual([
    "Please ship parcel 7",
    "I ask for leave.",
    "Shipped.",
  ]);
});
