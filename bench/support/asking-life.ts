import { setTimeout as pause } from "node:timers/promises";
import type { ModelMessage } from "ai";
import { openHouse } from "../../test/e2e/support/house.ts";
import { startFakeOpenAi } from "../../test/support/fake-openai.ts";

/** An input as a provider was sent it, by HTTP. */
export type SentInput = { instructions: string; messages: ModelMessage[] };

type Sent = { body: { messages: { role: string; content: unknown }[] } };

export const inputsIn = (requests: unknown[]): SentInput[] =>
  (requests as Sent[]).map(({ body: { messages: sent } }) => ({
    instructions: String(sent[0]?.content),
    messages: sent.slice(1) as ModelMessage[],
  }));

type Runs = { items: { status: string; completedAt?: string }[] };

const rounds = 12;

/**
 * The inputs of a consciousness in a real house that asks a person and waits, again and again. Blocks with schemas
 * come, change and go; another agent shares one and takes it back; messages are said that wake nobody.
 */
export const askingLife = async (): Promise<SentInput[]> => {
  const model = await startFakeOpenAi();
  const house = await openHouse();
  try {
    const { api } = house;
    const [husam, sara] = [await house.addPerson("Husam"), await house.addPerson("Sara")];
    const openai = { provider: "openai-compatible", name: "scripted", baseUrl: model.baseUrl };
    const agentId = await house.addAgent({ name: "Analyst", messaging: "threaded", model: openai });
    const ownerId = await house.addAgent({ name: "Writer" });
    const spaceId = await house.addSpace("Alpha", [husam.id, sara.id, agentId]);
    await api.patch(`/v1/spaces/${spaceId}`, { wakePolicy: "addressed" });
    await house.addSpace("Desk", [agentId, ownerId]);
    const say = (person: typeof husam, text: string) => person.api.post(`/v1/spaces/${spaceId}/messages`, { text });
    const at = (id: string, label: string): string => `/v1/agents/${id}/blocks${label}`;
    const fields = [{ name: "mail", type: "text", description: "Where to write", required: true }];
    const changes = [
      () => api.post(at(agentId, ""), { label: "contact", type: "core", schema: { type: "map", fields } }),
      () => api.post(at(ownerId, ""), { label: "plan", schema: { type: "text" }, content: "Ship on Friday." }),
      () => api.put(`${at(ownerId, "/plan/shares")}/${agentId}`, { permission: "ReadOnly" }),
      () => api.put(`${at(ownerId, "/plan/shares")}/${agentId}`, { permission: "Append" }),
      () => api.patch(at(agentId, "/contact"), { description: "Whom to write to" }),
      () => api.delete(`${at(ownerId, "/plan/shares")}/${agentId}`),
    ];
    const ended = async (count: number): Promise<void> => {
      for (;;) {
        const { items } = await api.get<Runs>(`/v1/agents/${agentId}/runs?limit=100`);
        if (items.filter(({ completedAt }) => completedAt).length >= count) return;
        await pause(50);
      }
    };
    const entering = { name: "enter_space", arguments: { spaceId } };
    for (let round = 0; round < rounds; round += 1) {
      const asking = { name: "send_message", arguments: { text: `@Sara question ${round}?`, wait: true } };
      model.script([{ toolCalls: [entering, asking] }, { text: `She said ${round}.` }]);
      await say(husam, `@Analyst ask her about ${round}`);
      await ended(round * 2 + 1);
      await say(husam, "Let us have lunch.");
      // Each happens once, then the shares come and go.
      await changes[round < changes.length ? round : round % 2 === 0 ? 2 : 5]?.();
      await say(sara, `Answer ${round}`);
      await ended(round * 2 + 2);
    }
    return inputsIn(model.requests);
  } finally {
    await house.close();
    await model.stop();
  }
};
