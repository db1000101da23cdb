import { beforeAll, expect, onTestFinished, test, vi } from "vitest";
import * as z from "zod";
import { loadLoro } from "../../src/agent/memory/documents/document.ts";
import { WaitingToolCall } from "../../src/protocol/tool-call.ts";
import { type Call, expectOk, ids, openHouse, call as request } from "../support/house.ts";
import { call, installModel, type ScriptedStep, scriptedModel, step, text } from "../support/scripted-model.ts";
import { problemIn } from "./operations.ts";

/** The word that was said in Board, by a person and by the agent, which kept it in every way it has. */
const word = "Kestrel";

// The first request brings the whole worker up, and the first document what it is made with.
beforeAll(async () => {
  await openHouse();
  await loadLoro();
}, 60_000);

const Runs = z.object({ items: z.array(z.object({ id: z.string(), status: z.string() })) });
const Head = z.object({ agent: z.object({ left: z.record(z.string(), z.number()) }) });

const scripted = (steps: ScriptedStep[]): void =>
  onTestFinished(installModel(scriptedModel(() => steps.shift() ?? step(text("Done.")))));

/** A run of the agent in Board, which is confidential, is over. */
const stage = async (continuity: "timeline" | "consciousness", steps: ScriptedStep[], config: object = {}) => {
  scripted(steps);
  const house = await openHouse();
  const [mona, ada] = [await house.person("Mona"), await house.person("Ada", "admin")];
  const { id: agentId } = await house.agent({ name: "Analyst", continuity, ...config });
  const { id: spaceId } = await house.space("Board", [mona, ada, { id: agentId }], { confidential: true });
  const ask = (path: string, caller: Call = {}) => request(path, { bearer: house.secretKey, ...caller });
  const told = await house.say(spaceId, mona, `@Analyst the launch is called ${word}`);
  const runs = (status: string) =>
    vi.waitFor(
      async () => {
        const { items } = await expectOk(Runs, ask(`/v1/agents/${agentId}/runs?space=${spaceId}`));
        if (items[0]?.status !== status) throw new Error(`the run is ${items[0]?.status ?? "not there"}`);
        return items[0].id;
      },
      { timeout: 10_000 },
    );
  return { house, mona, ada, agentId, spaceId, ask, told, runs };
};

test.for(["timeline", "consciousness"] as const)(
  "[C19] without ?space= no route or log shows a word that a %s has from there",
  async (continuity) => {
    const lines = (["log", "info", "warn", "error"] as const).map((level) => vi.spyOn(console, level));
    onTestFinished(() => void vi.restoreAllMocks());
    const { agentId, spaceId, ask, told, runs, ada } = await stage(continuity, [
      step(
        call("enter_space", { spaceId: "not one" }),
        call("set_memories", { memories: [{ key: word, value: word }] }),
      ),
      step(call("set_goals", { goals: [{ id: word, description: `Launch ${word}` }] })),
      step(call("recall", { op: "insert", content: `It is called ${word}` }), call(`${word}Tool`, { word })),
      step(call("block_create", { label: word, type: "core", content: word }), call("search", { query: word })),
      step(call("set_plans", { plans: [{ id: word, name: word, instruction: word, runAfter: "2 hours" }] })),
      step(call("send_message", { text: `So it is ${word}.` })),
    ]);
    const runId = await runs("completed");
    const own = `/v1/agents/${agentId}`;
    expect((await problemIn(await ask(`${own}/runs/${runId}`))).code).toBe("not_found");
    const paths = ["", "/runs", "/inbox", "/context", "/memories", "/goals", "/plans", "/blocks", "/archival"];
    const looks = [
      ...[...paths, "/hooks", `/search?q=${word}`, `/knows?messageId=${told.id}`, "/export"].map(
        (path) => `${own}${path}`,
      ),
      ...[`/v1/search?q=${word}`, "/v1/tool-calls", "/v1/spaces", "/v1/agents"],
    ];
    for (const path of looks) {
      const answer = await ask(path);
      expect(answer.status, path).toBe(200);
      // The search's query stands in its address alone.
      expect(await answer.text(), path).not.toContain(word);
    }
    const [head = ""] = (await (await ask(`${own}/export`)).text()).split("\n");
    expect(Head.parse(JSON.parse(head)).agent.left).toMatchObject({ compartments: 1, events: 0, runs: 0 });
    const written = lines.flatMap(({ mock }) => mock.calls.flat()).join("\n");
    expect(written).toContain(runId);
    expect(written).not.toContain(word);
    // With it, who is there finds all of it.
    for (const path of [`/runs/${runId}`, "/context", "/memories", "/goals", "/plans", "/blocks", "/archival"]) {
      const answer = await ask(`${own}${path}?space=${spaceId}`, { bearer: ada.token });
      expect(await answer.text(), path).toContain(word);
    }
    const found = await ask(`${own}/search?q=${word}&space=${spaceId}`);
    expect(await found.text()).toContain(word);
    expect(await (await ask(`${own}/knows?messageId=${told.id}&space=${spaceId}`)).json()).toMatchObject({
      known: true,
    });
  },
);

test("[C19] a call of a confidential space waits for servers, not for admins", async () => {
  const tool = { name: "lookUp", description: "Looks it up", executionType: "external", visible: false };
  const { ask, ada, runs, agentId, spaceId } = await stage("timeline", [step(call("lookUp", { word }))], {
    tools: [{ ...tool, confidential: "allowed" }],
  });
  const List = z.object({ items: z.array(WaitingToolCall) });
  const listed = (caller?: Call) => expectOk(List, ask("/v1/tool-calls", caller));
  const waiting = await vi.waitFor(
    async () => {
      const [first] = (await listed()).items;
      if (!first) throw new Error("no call is listed");
      return first;
    },
    { timeout: 10_000 },
  );
  expect(waiting).toMatchObject({ agentId, name: "lookUp", input: { word } });
  expect((await listed({ bearer: ada.token })).items).toEqual([]);
  const own = `/v1/tool-calls/${waiting.toolCallId}`;
  const none = `/v1/tool-calls/${ids.deriveOwned("tc", agentId, "none")}`;
  for (const [path, body] of [
    ["claim", { holder: "desk" }],
    ["result", { result: 1 }],
  ] as const) {
    const asAda = async (at: string) => problemIn(await ask(`${at}/${path}`, { bearer: ada.token, body }));
    const { code, detail } = await asAda(own);
    expect(code).toBe("not_found");
    // As for a call that is not there.
    expect(detail).toBe((await asAda(none)).detail);
    expect((await ask(`${own}/${path}`, { body })).status).toBe(200);
  }
  const run = await ask(`/v1/agents/${agentId}/runs/${await runs("completed")}?space=${spaceId}`);
  expect(await run.json()).toMatchObject({ run: { steps: [{ toolCalls: [{ name: "lookUp", output: 1 }] }, {}] } });
});

test("[C19] [S5] an admin reads from when all see that it came in, until it has left", async () => {
  const { house, agentId, spaceId, ask, runs } = await stage("timeline", [step(text("Noted."))]);
  await runs("completed");
  const boss = await house.person("Boss", "admin");
  const looks = [`/v1/spaces/${spaceId}/messages`, `/v1/agents/${agentId}/runs?space=${spaceId}`];
  const statuses = async () => Promise.all(looks.map(async (path) => (await ask(path, { bearer: boss.token })).status));
  expect(await statuses()).toEqual([403, 403]);
  const members = `/v1/spaces/${spaceId}/members`;
  await expectOk(z.unknown(), ask(members, { bearer: boss.token, body: { entityId: boss.id } }));
  expect(await statuses()).toEqual([200, 200]);
  const seen = await ask(`/v1/spaces/${spaceId}`);
  expect(await seen.text()).toContain(boss.id);
  expect((await ask(`${members}/${boss.id}`, { method: "DELETE", bearer: boss.token })).status).toBe(204);
  expect(await statuses()).toEqual([403, 403]);
});

test("[C19] how much a space stores is for those who read it, until it is near its end", async () => {
  const house = await openHouse();
  const [mona, boss] = [await house.person("Mona"), await house.person("Boss", "admin")];
  const { id } = await house.space("Board", [mona], { confidential: true });
  const asks = async (bearer: string) => (await request(`/v1/spaces/${id}`, { bearer })).json();
  const storage = { bytes: expect.any(Number), state: "ok" };
  expect(await asks(mona.token)).toMatchObject({ space: { id, storage } });
  expect(await asks(house.secretKey)).toMatchObject({ space: { id, storage } });
  expect(await asks(boss.token)).not.toHaveProperty("space.storage");
});

test("[C19] [S4] ?space= of an open space is refused, and a key counts for one mind", async () => {
  const { house, agentId, spaceId, ask, mona, runs } = await stage("timeline", [step(text("Noted."))]);
  await runs("completed");
  const open = await house.space("Open", [mona, { id: agentId }]);
  const refused = await problemIn(await ask(`/v1/agents/${agentId}/runs?space=${open.id}`));
  expect(refused).toMatchObject({ code: "invalid_request", issues: [{ path: "space" }] });
  expect(refused.detail).toContain("Leave it out");
  const apart = await house.space("Apart", [mona], { confidential: true });
  const nothing = await problemIn(await ask(`/v1/agents/${agentId}/runs?space=${apart.id}`));
  expect(nothing).toMatchObject({ code: "not_found" });
  const keep = (query: string) =>
    ask(`/v1/agents/${agentId}/archival${query}`, { body: { content: word }, headers: { "idempotency-key": "one" } });
  const [first, again] = [await keep(`?space=${spaceId}`), await keep(`?space=${spaceId}`)];
  expect([first.status, again.status]).toEqual([201, 201]);
  expect(await again.text()).toBe(await first.text());
  expect((await problemIn(await keep(""))).code).toBe("idempotency_mismatch");
  const kept = await ask(`/v1/agents/${agentId}/archival`);
  expect(await kept.json()).toMatchObject({ items: [] });
});

test("[C19] [S5] a session that an admin made for a member reads only while both are in it", async () => {
  const { house, mona, spaceId, ask, runs } = await stage("timeline", [step(text("Noted."))]);
  await runs("completed");
  const boss = await house.person("Boss", "admin");
  const minted = ask("/v1/tokens", { bearer: boss.token, body: { entityId: mona.id } });
  const { token: bearer } = await expectOk(z.object({ token: z.string() }), minted);
  const stream = () => ask(`/v1/spaces/${spaceId}/stream?cursor=0`, { bearer, headers: { upgrade: "websocket" } });
  const statuses = async () => [
    (await ask(`/v1/spaces/${spaceId}/messages`, { bearer })).status,
    (await ask(`/v1/spaces/${spaceId}/messages`, { bearer, body: { text: "Hello" } })).status,
  ];
  expect([...(await statuses()), (await stream()).status]).toEqual([403, 403, 403]);
  const members = `/v1/spaces/${spaceId}/members`;
  await expectOk(z.unknown(), ask(members, { bearer: boss.token, body: { entityId: boss.id } }));
  expect(await statuses()).toEqual([200, 201]);
  const socket = (await stream()).webSocket;
  if (!socket) throw new Error("there is no socket");
  const closed = new Promise<number>((resolve) => socket.addEventListener("close", ({ code }) => resolve(code)));
  socket.accept();
  await ask(`${members}/${boss.id}`, { method: "DELETE", bearer: boss.token });
  expect(await closed).toBe(4403);
  expect(await statuses()).toEqual([403, 403]);
  // Her own session goes on.
  expect((await ask(`/v1/spaces/${spaceId}/messages`, { bearer: mona.token })).status).toBe(200);
});

test("[C19] [S5] such a session ends as the space becomes confidential", async () => {
  const house = await openHouse();
  const [mona, boss] = [await house.person("Mona"), await house.person("Boss", "admin")];
  const { id } = await house.space("Open", [mona]);
  const minted = request("/v1/tokens", { bearer: boss.token, body: { entityId: mona.id } });
  const { token } = await expectOk(z.object({ token: z.string() }), minted);
  const headers = { upgrade: "websocket" };
  const { webSocket } = await request(`/v1/spaces/${id}/stream`, { bearer: token, headers });
  const closed = new Promise<number>((resolve) => webSocket?.addEventListener("close", ({ code }) => resolve(code)));
  webSocket?.accept();
  await request(`/v1/spaces/${id}`, { method: "PATCH", bearer: house.secretKey, body: { confidential: true } });
  expect(await closed).toBe(4403);
});
