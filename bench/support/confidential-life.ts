import { setTimeout as pause } from "node:timers/promises";
import { openHouse } from "../../test/e2e/support/house.ts";
import { startFakeOpenAi } from "../../test/support/fake-openai.ts";
import { inputsIn, type SentInput } from "./asking-life.ts";

type Runs = { items: { completedAt?: string }[] };

const rounds = 6;
const names = ["Board", "People", "Legal"];

/**
 * The inputs of a consciousness in a real house, in each of its three confidential spaces. Between two of their
 * questions it answers in the open. It keeps an open memory, and one of each space's own.
 */
export const confidentialLife = async (): Promise<SentInput[][]> => {
  const model = await startFakeOpenAi();
  const house = await openHouse();
  try {
    const { api } = house;
    const husam = await house.addPerson("Husam");
    const openai = { provider: "openai-compatible", name: "scripted", baseUrl: model.baseUrl };
    const agentId = await house.addAgent({ name: "Analyst", model: openai });
    const openId = await house.addSpace("Alpha", [husam.id, agentId]);
    const members = [{ entityId: husam.id }, { entityId: agentId }];
    const make = async (name: string): Promise<string> =>
      (await api.post<{ space: { id: string } }>("/v1/spaces", { name, members, confidential: true })).space.id;
    const spaces = await Promise.all(names.map(async (name) => ({ id: await make(name), inputs: [] as SentInput[] })));
    /** Says it, and answers the inputs that came of it once so many runs have ended there. */
    const ask = async (spaceId: string, text: string, count: number, query = ""): Promise<SentInput[]> => {
      const from = model.requests.length;
      await husam.api.post(`/v1/spaces/${spaceId}/messages`, { text });
      for (;;) {
        const { items } = await api.get<Runs>(`/v1/agents/${agentId}/runs?limit=100${query}`);
        if (items.filter(({ completedAt }) => completedAt).length >= count) return inputsIn(model.requests.slice(from));
        await pause(20);
      }
    };
    const keeping = (value: string) => ({ name: "set_memories", arguments: { memories: [{ key: value, value }] } });
    const saying = { name: "send_message", arguments: { text: "Here it is." } };
    for (let round = 1; round <= rounds; round += 1) {
      const entering = { name: "enter_space", arguments: { spaceId: openId } };
      model.script([{ toolCalls: [entering, saying, keeping(`open-${round}`)] }, { text: `I answered ${round}.` }]);
      await ask(openId, `Open question ${round}?`, round);
      for (const { id, inputs } of spaces) {
        model.script([{ toolCalls: [keeping(`own-${round}`)] }, { text: `I kept ${round}.` }]);
        inputs.push(...(await ask(id, `Secret question ${round}?`, round, `&space=${id}`)));
      }
    }
    return spaces.map(({ inputs }) => inputs);
  } finally {
    await house.close();
    await model.stop();
  }
};
