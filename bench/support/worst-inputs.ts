import { exportMediaType } from "../../src/protocol/exported-agent.ts";
import { openWorkspace } from "../../test/e2e/support/house.ts";
import { startFakeOpenAi } from "../../test/support/fake-openai.ts";

/** A kind of input, as a tenant may send it: one call sends one. */
export type Input = { name: string; send(index: number): Promise<unknown> };

const bodyBytes = 1024 * 1024;
const textBytes = 32 * 1024;
const mib = (part: string): string =>
  Array.from({ length: Math.floor((bodyBytes - 1000) / (part.length + 1)) }, () => part).join();

/** Marks of Markdown that begin and never end, and names that are no member's. */
const marks = (index: number): string => `${index} ${"*_[@A(`<".repeat(textBytes)}`.slice(0, textBytes);
const words = (count: number, from: number): string =>
  Array.from({ length: count }, (_, at) => `w${((from * 7919 + at * 31) % 46_656).toString(36)}`).join(" ");

/** Opens a tenant whose agent, space, index and blocks are filled, and answers the worst that it may send. */
export const openWorstTenant = async (url: string): Promise<{ inputs: Input[]; close(): Promise<void> }> => {
  const tenant = await openWorkspace(url);
  const { api } = tenant;
  const send = async (method: string, path: string, body?: string, headers: Record<string, string> = {}) => {
    const authorization = `Bearer ${tenant.secretKey}`;
    const answer = await fetch(url + path, {
      method,
      headers: { authorization, "content-type": "application/json", ...headers },
      ...(body === undefined ? {} : { body }),
    });
    return { status: answer.status, text: await answer.text() };
  };
  const person = await tenant.addPerson("Mallory");
  const list = Array.from({ length: 3000 }, (_, name) => ({ name }));
  // A call whose input takes the whole budget of a check. It is invalid, and is made again.
  const model = await startFakeOpenAi(() => ({
    toolCalls: [{ name: "check", arguments: { list, text: "a".repeat(20_000) } }],
  }));
  const pattern = "^a*a*a*a*a*b$";
  const inputSchema = {
    type: "object",
    properties: { list: { type: "array", uniqueItems: true }, text: { type: "string", pattern } },
  };
  const check = { name: "check", description: "Checks", executionType: "internal", inputSchema };
  const caller = await tenant.addAgent({
    name: "Caller",
    model: { provider: "openai-compatible", name: "worst", baseUrl: model.baseUrl },
    tools: [check],
  });
  const agentId = await tenant.addAgent({ name: "Listener", model: { provider: "rehearsal" } });
  // Nothing wakes the agent, whose model here would take this machine's time: it hears all.
  const members = [person.id, agentId].map((entityId) => ({ entityId }));
  const made = { name: "Worst", members, wakePolicy: "addressed" };
  const spaceId = (await api.post<{ space: { id: string } }>("/v1/spaces", made)).space.id;
  const at = `/v1/spaces/${spaceId}/messages`;
  const agent = `/v1/agents/${agentId}`;
  const said: string[] = [];
  for (let index = 0; index < 100; index += 1) {
    said.push(
      (await person.api.post<{ message: { id: string } }>(at, { text: words(5000, index).slice(0, textBytes) })).message
        .id,
    );
    await api.post(`${agent}/archival`, { content: words(10_000, index).slice(0, 2 * textBytes) });
  }
  const long = { label: "long", charLimit: 200_000, content: `${"a".repeat(100_000)}!` };
  await api.post(`${agent}/blocks`, long);
  const template = Array.from({ length: 50 }, (_, field) => `{{payload.f${field}}}`).join(" ");
  const secret = "a secret of the sender's own";
  const hook = await api.post<{ url: string }>(`${agent}/hooks`, {
    name: "sender",
    scheme: "header",
    secret,
    template,
  });
  /** As large as one request may write down, in six schemas. */
  const patterns = (index: number) =>
    Array.from({ length: 6 }, (_, tool) => ({
      ...check,
      name: `check${tool}`,
      inputSchema: {
        type: "object",
        properties: Object.fromEntries(
          Array.from({ length: 10 }, (_, at) => [
            `p${at}`,
            { pattern: `[\\p{L}_-]{100}${index * 60 + tool * 10 + at}` },
          ]),
        ),
      },
    }));
  const exported = (await send("GET", `${agent}/export`)).text;
  const ndjson = { "content-type": exportMediaType };
  const edit = (index: number) => {
    const operation = { op: "replace_text", mode: "regex", old: `(?:[a-z]?[a-y]?){15}!${index}`, new: "!" };
    return JSON.stringify({ operations: Array.from({ length: 100 }, () => operation) });
  };
  const input = (name: string, one: Input["send"]): Input => ({ name, send: one });
  const inputs = [
    input("ordinary posts, to compare with", (index) => person.api.post(at, { text: `What of week ${index}?` })),
    input("the longest posts, of marks that do not end", (index) => person.api.post(at, { text: marks(index) })),
    input("edits of the longest posts", (index) =>
      person.api.patch(`${at}/${said[index % said.length]}`, {
        text: index % 2 ? marks(index) : words(5000, index).slice(0, textBytes),
      }),
    ),
    input("tools with the largest patterns", (index) =>
      send("PATCH", agent, JSON.stringify({ tools: patterns(index) })),
    ),
    input("calls whose input costs a schema most", (index) =>
      send("POST", `/v1/agents/${caller}/trigger`, JSON.stringify({ serviceName: "Worst", payload: index })),
    ),
    input("edits of a block by the slowest patterns", (index) =>
      send("POST", `${agent}/blocks/long/operations`, edit(index)),
    ),
    input("a body of the most values", () =>
      send("POST", `${agent}/trigger`, `{"serviceName":"W","payload":[${mib("{}")}]}`),
    ),
    input("a body of the most fields", (index) =>
      send("POST", `${agent}/trigger`, `{"serviceName":"W","payload":{${mib(`"${index}":0`)}}}`),
    ),
    input("the deepest body", () => send("POST", at, `${"[".repeat(bodyBytes / 2)}${"]".repeat(bodyBytes / 2)}`)),
    input("searches of the most words", (index) =>
      send(
        "GET",
        `${agent}/search?limit=100&q=${encodeURIComponent(`w${index % 36}* ${words(450, index)}`.slice(0, 2000))}`,
      ),
    ),
    input("the longest pages of history", () => send("GET", `${at}?limit=200`)),
    input("exports", () => send("GET", `${agent}/export`)),
    input("imports", () => send("POST", "/v1/imports", exported, ndjson)),
    {
      name: "webhooks of the most fields",
      send: (index) => {
        const fields = Array.from({ length: 60_000 }, (_, field) => `"f${field}":"${index}"`).join();
        return send("POST", new URL(hook.url).pathname, `{${fields}}`, { "x-webhook-secret": secret });
      },
    },
  ] satisfies Input[];
  return { inputs, close: () => model.stop() };
};
