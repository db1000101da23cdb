import { named, order, type Stage, type ToolOrder } from "./holes-stage.ts";
import { until } from "./scene.ts";

/**
 * A confidential space, Vault, in which a person tells an agent a word. The agent keeps it in every way that it has, and is
 * told to carry it out in every way that it could. Bob, Ada, Eve and Zed are outside.
 */
export const entity = async ({ api }: Stage, name: string, role = "member") => {
  const { entity: made } = await api.post<{ entity: { id: string } }>("/v1/entities", {
    type: "human",
    name: named(name),
    role,
  });
  const { token } = await api.post<{ token: string }>("/v1/tokens", { entityId: made.id });
  return { id: made.id, token };
};

export const openVault = async (stage: Stage, continuity: string) => {
  const { api, own } = stage;
  const people = {
    mona: await entity(stage, "Mona"),
    cleo: await entity(stage, "Cleo", "admin"),
    bob: await entity(stage, "Bob"),
    ada: await entity(stage, "Ada", "admin"),
    eve: await entity(stage, "Eve", "admin"),
    zed: await entity(stage, "Zed", "admin"),
  };
  const { mona, cleo, bob, ada, eve, zed } = people;
  const common = { description: "For this try", inputSchema: { type: "object" }, confidential: "allowed" };
  const name = named("Analyst");
  const agent = await stage.agent(name, {
    continuity,
    tools: [
      { ...common, name: "lookUp", executionType: "external", visible: false },
      { ...common, name: "pay", executionType: "internal", approval: {} },
      {
        ...common,
        name: "note",
        executionType: "gateway",
        execution: { url: own.url, body: "{{input}}" },
        visible: false,
      },
      {
        ...common,
        confidential: undefined,
        name: "tell",
        executionType: "gateway",
        execution: { url: `${own.url}/tell`, body: "{{input}}" },
      },
    ],
  });
  const general = await stage.space("General", [mona.id, bob.id, ada.id, agent]);
  const vault = await stage.space("Vault", [mona.id, cleo.id, eve.id, agent], {
    confidential: true,
    release: { quorum: 1 },
  });
  const other = await stage.space("Cellar", [zed.id, agent], { confidential: true });
  const word = named("Kestrel");
  const confidant = named("Confidant");
  await api.post(`/v1/spaces/${general}/members`, { entityId: await stage.agent(confidant) });
  await api.post(`/v1/agents/${agent}/blocks`, { label: "open-notes", type: "core", content: "open" });
  await api.put(`/v1/agents/${agent}/blocks/open-notes/spaces/${general}`, {});
  const told = await stage.say(vault, eve.token, `the launch is called ${word}`);
  await stage.handled(vault, told, agent);
  // Eve saw it: from now on she is outside, and an admin.
  const line = await stage.socket(`/v1/spaces/${vault}/stream?token=${eve.token}`);
  await api.delete(`/v1/spaces/${vault}/members/${eve.id}`);
  await until("end of Eve's socket", async () => line.closed());
  const kept = [
    [["enter_space", { spaceId: vault }]],
    [
      ["set_memories", { memories: [{ key: word, value: word }] }],
      ["set_goals", { goals: [{ id: word, description: `Launch ${word}` }] }],
    ],
    [
      ["recall", { op: "insert", content: `It is called ${word}` }],
      ["block_create", { label: "own-notes", type: "core", content: word }],
    ],
    [
      ["set_plans", { plans: [{ id: word, name: word, instruction: word, runAfter: "2 hours" }] }],
      ["note", { word }],
      ["tell", { word }],
    ],
    [
      ["block_edit", { label: "open-notes", operations: [{ op: "append_text", text: word }] }],
      ["search", { query: "launch" }],
    ],
    [["send_message", { text: `So it is ${word}.` }]],
    [
      ["block_share", { label: "own-notes", space: general }],
      ["block_share", { label: "own-notes", agent: confidant }],
      [word, { [word]: word }],
    ],
    // A move and a speech in one step: what is streamed before it is refused must show nowhere.
    [
      ["enter_space", { spaceId: general }],
      ["send_message", { text: `Out with ${word}` }],
    ],
    [
      ["enter_space", { spaceId: other }],
      ["send_message", { text: `Over with ${word}` }],
    ],
    [
      ["enter_space", { spaceId: vault }],
      ["pay", { to: word }],
    ],
  ] as ToolOrder[][];
  const lines = await Promise.all([
    ...[bob, ada].map(({ token }) => stage.socket(`/v1/spaces/${general}/stream?token=${token}`)),
    stage.socket(`/v1/spaces/${other}/stream?token=${zed.token}`),
  ]);
  await stage.say(vault, mona.token, `${word} ${order(...kept)}`);
  // Cards wait: one of the release, and one of `pay`.
  const card = await stage.card(vault, "requires_action");
  await stage.say(vault, mona.token, `${word} ${order([["lookUp", { word }]])}`);
  const call = await until("waiting call", async () => {
    const { items } = await api.get<{ items: { toolCallId: string; agentId: string }[] }>("/v1/tool-calls");
    return items.find(({ agentId }) => agentId === agent)?.toolCallId;
  });
  const inside = async <T>(path: string) =>
    (await api.get<{ items: T[] }>(`/v1/agents/${agent}${path}?space=${vault}`)).items;
  const [run] = await inside<{ id: string }>("/runs");
  const [entry] = await inside<{ id: string }>("/archival");
  const fill: Record<string, string> = {
    ...{ agentId: agent, spaceId: vault, messageId: told, entityId: mona.id, otherAgentId: agent, toolCallId: call },
    ...{ runId: run?.id ?? "", archivalId: entry?.id ?? "", key: word, goalId: word, planId: word, label: "own-notes" },
  };
  return { ...people, agent, name, confidant, general, vault, other, word, told, card, call, lines, fill };
};
