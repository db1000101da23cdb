import { env } from "cloudflare:workers";
import { describe, expect, test, vi } from "vitest";
import { compartmentId } from "../../src/shared/ids.ts";
import { Workspace } from "../../src/workspace/workspace.ts";
import { adminKey, type Call, call, ids, openHouse } from "../support/house.ts";
import { rowsWith } from "../support/rows.ts";
import { problemIn } from "./operations.ts";

let keys = 0;
const newKey = (): string => `once-${++keys}`;

const twice = async (path: string, options: Call) => {
  const headers = { "idempotency-key": newKey(), ...options.headers };
  const first = await call(path, { ...options, headers });
  const second = await call(path, { ...options, headers });
  return { first, second, headers, bodies: [await first.text(), await second.text()] };
};

const expectReplayed = ({ first, second, bodies }: Awaited<ReturnType<typeof twice>>, status: number): void => {
  expect([first.status, second.status]).toEqual([status, status]);
  expect(JSON.parse(bodies[1] ?? "")).toEqual(JSON.parse(bodies[0] ?? ""));
  expect(first.headers.get("idempotency-replayed")).toBeNull();
  expect(second.headers.get("idempotency-replayed")).toBe("true");
};

describe("[D1] the same Idempotency-Key makes one thing, and gets its answer again", () => {
  test("POST /v1/workspaces: also the secret key that is shown once", async () => {
    const done = await twice("/v1/workspaces", { bearer: adminKey, body: { name: "Once" } });
    expectReplayed(done, 201);
    const { secretKey } = JSON.parse(done.bodies[0] ?? "") as { secretKey: string };
    expect((await call("/v1/workspace", { bearer: secretKey })).status).toBe(200);
    const other = await call("/v1/workspaces", { bearer: adminKey, body: { name: "Other" }, headers: done.headers });
    expect(await problemIn(other)).toMatchObject({ code: "idempotency_mismatch" });
  });

  test("POST /v1/workspaces: the next try completes a creation that a crash cut off", async () => {
    const key = newKey();
    const id = ids.derive("wsp", "operator", key);
    const keyId = ids.derive("key", id, "first");
    await env.WORKSPACE.getByName(id).create({ id, name: "Cut", keyId, keyHash: "whatever was stored" });
    const send = (name: string) =>
      call("/v1/workspaces", { bearer: adminKey, body: { name }, headers: { "idempotency-key": key } });
    expect(await problemIn(await send("Another"))).toMatchObject({ code: "idempotency_mismatch" });
    const answer = await send("Cut");
    expect(answer.status).toBe(201);
    expect(await answer.json()).toMatchObject({ workspace: { id, name: "Cut" }, key: { id: keyId } });
  });

  test("POST /v1/workspace/keys", async () => {
    const { secretKey } = await openHouse();
    const done = await twice("/v1/workspace/keys", { method: "POST", bearer: secretKey });
    expectReplayed(done, 201);
    const made = JSON.parse(done.bodies[0] ?? "") as { secretKey: string };
    expect((await call("/v1/workspace", { bearer: made.secretKey })).status).toBe(200);
  });

  test("POST /v1/entities", async () => {
    const { secretKey } = await openHouse();
    const done = await twice("/v1/entities", { bearer: secretKey, body: { type: "human", name: "Mona" } });
    expectReplayed(done, 201);
    const list = (await (await call("/v1/entities", { bearer: secretKey })).json()) as { items: unknown[] };
    expect(list.items).toHaveLength(1);
  });

  test("POST /v1/agents, /v1/spaces and /v1/spaces/:id/members", async () => {
    const house = await openHouse();
    const mona = await house.person("Mona");
    const bearer = house.secretKey;
    expectReplayed(await twice("/v1/agents", { bearer, body: { name: "Analyst" } }), 201);
    const space = await twice("/v1/spaces", { bearer, body: { name: "Alpha" } });
    expectReplayed(space, 201);
    const { id } = (JSON.parse(space.bodies[0] ?? "") as { space: { id: string } }).space;
    expectReplayed(await twice(`/v1/spaces/${id}/members`, { bearer, body: { entityId: mona.id } }), 201);
  });

  test("POST /v1/agents/:id/trigger", async () => {
    const house = await openHouse();
    const { id } = await house.agent({ name: "Analyst" });
    const body = { serviceName: "jira", payload: { issue: 1 } };
    const done = await twice(`/v1/agents/${id}/trigger`, { bearer: house.secretKey, body });
    expectReplayed(done, 202);
    const other = { ...body, payload: { issue: 2 } };
    const mismatch = await call(`/v1/agents/${id}/trigger`, {
      bearer: house.secretKey,
      body: other,
      headers: done.headers,
    });
    expect(await problemIn(mismatch)).toMatchObject({ code: "idempotency_mismatch" });
  });

  test("POST /v1/spaces/:id/messages, by Idempotency-Key and by clientKey", async () => {
    const house = await openHouse();
    const mona = await house.person("Mona");
    const { id } = await house.space("Alpha", [mona]);
    const path = `/v1/spaces/${id}/messages`;
    const done = await twice(path, { bearer: mona.token, body: { text: "hello" } });
    expectReplayed(done, 201);
    const other = await call(path, { bearer: mona.token, body: { text: "other" }, headers: done.headers });
    expect(await problemIn(other)).toMatchObject({ code: "idempotency_mismatch" });
    const long = { "idempotency-key": "k".repeat(255) };
    expectReplayed(await twice(path, { bearer: mona.token, body: { text: "long" }, headers: long }), 201);

    const body = { text: "keyed", clientKey: "c1" };
    const [first, again] = [
      await call(path, { bearer: mona.token, body }),
      await call(path, { bearer: mona.token, body }),
    ];
    expect([first.status, again.status]).toEqual([201, 200]);
    expect(await again.json()).toEqual(await first.json());
  });
});

test("[D1] [L1] an Idempotency-Key finds its message also once that was edited or deleted", async () => {
  const house = await openHouse();
  const mona = await house.person("Mona");
  const { id: spaceId } = await house.space("Alpha", [mona]);
  const path = `/v1/spaces/${spaceId}/messages`;
  const bearer = mona.token;
  const asked = { bearer, body: { text: "plums" }, headers: { "idempotency-key": newKey() } };
  const { message } = (await (await call(path, asked)).json()) as { message: { id: string } };
  const change = (how: Call) => call(`${path}/${message.id}`, { bearer, ...how });
  for (const how of [{ method: "PATCH", body: { text: "pears" } }, { method: "DELETE" }]) {
    const now = (await (await change(how)).json()) as { message: object };
    const again = await call(path, asked);
    expect([again.status, again.headers.get("idempotency-replayed")]).toEqual([201, "true"]);
    expect(await again.json()).toEqual({ message: now.message });
  }
});

test("[D1] two requests with one key at the same time make one thing", async () => {
  const { secretKey } = await openHouse();
  const headers = { "idempotency-key": newKey() };
  const body = { type: "human", name: "Mona" };
  const answers = await Promise.all(
    Array.from({ length: 5 }, () => call("/v1/entities", { bearer: secretKey, body, headers })),
  );
  const refused = answers.filter(({ status }) => status !== 201);
  expect(refused).not.toEqual([]);
  for (const answer of refused) {
    expect(await problemIn(answer)).toMatchObject({ code: "idempotency_in_progress" });
    expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
  }
  const list = (await (await call("/v1/entities", { bearer: secretKey })).json()) as { items: unknown[] };
  expect(list.items).toHaveLength(1);
});

test("[D1] a thing whose answer was lost is found by the next try and not made twice", async () => {
  const house = await openHouse();
  const mona = await house.person("Mona");
  const agent = await house.agent({ name: "Keeper" });
  const bodies: [string, Record<string, unknown>][] = [
    ["/v1/entities", { type: "human", name: "Leo" }],
    ["/v1/agents", { name: "Analyst" }],
    [
      "/v1/imports",
      {
        ...{ format: "colloquy.agent", version: 1, exportedAt: "2026-02-18T15:06:55.000Z" },
        agent: { id: ids.mint("ent"), config: { name: "Imported" } },
      },
    ],
    ["/v1/spaces", { name: "Alpha", members: [{ entityId: mona.id }] }],
    [`/v1/agents/${agent.id}/trigger`, { serviceName: "jira", payload: 1 }],
    [`/v1/agents/${agent.id}/hooks`, { scheme: "github", name: "github" }],
  ];
  const idOf = async (answer: Response): Promise<unknown> => {
    expect([201, 202]).toContain(answer.status);
    const made = (await answer.json()) as Record<string, { id?: string } | string>;
    const [first] = Object.values(made);
    return typeof first === "string" ? first : first?.id;
  };
  // As if the worker had died between making it and noting the answer.
  const lost = vi.spyOn(Workspace.prototype, "endRequest").mockRejectedValue(new Error("the worker is gone"));
  try {
    for (const [path, body] of bodies) {
      vi.setSystemTime(Date.now());
      const send = () => call(path, { bearer: house.secretKey, body, headers });
      const headers = { "idempotency-key": newKey() };
      const first = await idOf(await send());
      vi.setSystemTime(Date.now() + 61_000);
      expect(await idOf(await send()), path).toBe(first);
    }
  } finally {
    lost.mockRestore();
    vi.useRealTimers();
  }
});

test("the same key from another caller, at another address, or after a refusal is a new request", async () => {
  const house = await openHouse();
  const boss = await house.person("Boss", "admin");
  const headers = { "idempotency-key": newKey() };
  const make = (bearer: string, path: string, body: unknown) => call(path, { bearer, body, headers });
  expect((await make(house.secretKey, "/v1/agents", { name: "A", model: { alias: "nowhere" } })).status).toBe(422);
  expect((await make(house.secretKey, "/v1/agents", { name: "A" })).status).toBe(201);
  expect((await make(house.secretKey, "/v1/spaces", { name: "B" })).status).toBe(201);
  expect((await make(boss.token, "/v1/agents", { name: "C" })).status).toBe(201);
});

test("[S4] a malformed Idempotency-Key is refused", async () => {
  const { secretKey } = await openHouse();
  for (const key of ["with space", "x".repeat(256)]) {
    const headers = { "idempotency-key": key };
    const answer = await call("/v1/entities", { bearer: secretKey, body: { type: "human", name: "Mona" }, headers });
    expect(await problemIn(answer)).toMatchObject({ code: "invalid_request" });
  }
});

test("[D1] no kept answer tells what was deleted: the same key is `gone`, and no row has it", async () => {
  const house = await openHouse();
  const { secretKey: bearer, workspaceId } = house;
  const agent = await house.agent({ name: "Robo" });
  const mona = await house.person("Mona");
  const under = `/v1/agents/${agent.id}`;
  const block = { label: "garden", type: "core", content: "Quinces ripen late" };
  const fact = await twice(`${under}/archival`, { bearer, body: { content: "Medlars ripen late" } });
  const made = await twice(`${under}/blocks`, { bearer, body: block });
  const other = await twice(`${under}/blocks`, { bearer, body: { ...block, label: "shed", content: "Spades" } });
  const operation = { operations: [{ op: "append_text", text: "Damsons too" }] };
  const edit = await twice(`${under}/blocks/garden/operations`, { bearer, body: operation });
  const space = await twice("/v1/spaces", { bearer, body: { name: "Orchard", members: [{ entityId: mona.id }] } });
  const person = await twice("/v1/entities", { bearer, body: { type: "human", name: "Ottilie" } });
  const idIn = ({ bodies }: { bodies: string[] }): string => /"id":"(\w+)"/.exec(bodies[0] ?? "")?.[1] ?? "";
  const gone = [
    [`${under}/blocks/garden`, "Quinces", `${under}/blocks`, made, block],
    [`${under}/blocks/garden`, "Damsons", `${under}/blocks/garden/operations`, edit, operation],
    [`${under}/archival/${idIn(fact)}`, "Medlars", `${under}/archival`, fact, { content: "Medlars ripen late" }],
    [
      `/v1/spaces/${idIn(space)}`,
      "Orchard",
      "/v1/spaces",
      space,
      { name: "Orchard", members: [{ entityId: mona.id }] },
    ],
    [`/v1/entities/${idIn(person)}`, "Ottilie", "/v1/entities", person, { type: "human", name: "Ottilie" }],
  ] as const;
  for (const address of new Set(gone.map(([each]) => each))) {
    expect((await call(address, { method: "DELETE", bearer })).status, address).toBe(204);
  }
  for (const [, word, path, { headers }, body] of gone) {
    const again = await problemIn(await call(path, { bearer, body, headers }));
    expect(again, path).toMatchObject({ code: "gone", status: 410 });
    expect(await rowsWith(env.WORKSPACE.getByName(workspaceId), word)).toEqual([]);
  }
  const kept = await call(`${under}/blocks`, {
    ...{ bearer, headers: other.headers },
    body: { ...block, label: "shed", content: "Spades" },
  });
  expect([kept.status, kept.headers.get("idempotency-replayed")]).toEqual([201, "true"]);
});

test("[L13] [D1] no kept answer tells of a deleted confidential space's compartments", async () => {
  const house = await openHouse();
  const { secretKey: bearer, workspaceId } = house;
  const [mona, agent] = [await house.person("Mona"), await house.agent({ name: "Robo" })];
  const board = await house.space("Board", [mona, agent], { confidential: true });
  await house.say(board.id, mona, "Hello");
  const inside = env.AGENT.getByName(compartmentId(ids, agent.id, board.id));
  await vi.waitFor(async () => expect((await inside.describe(workspaceId)).ok).toBe(true));
  const body = { label: "garden", content: "Greengages" };
  await twice(`/v1/agents/${agent.id}/blocks?space=${board.id}`, { bearer, body });
  expect((await call(`/v1/spaces/${board.id}`, { method: "DELETE", bearer })).status).toBe(204);
  const workspace = env.WORKSPACE.getByName(workspaceId);
  await vi.waitFor(async () => expect(await rowsWith(workspace, "Greengages")).toEqual([]));
});

test("[D1] no kept answer tells of an imported agent that was deleted", async () => {
  const house = await openHouse();
  const { secretKey: bearer, workspaceId } = house;
  const agent = await house.agent({ name: "Robo" });
  const document = await (await call(`/v1/agents/${agent.id}/export`, { bearer })).text();
  const sent = { bearer, body: document, headers: { "content-type": "application/x-ndjson" } };
  const made = await twice("/v1/imports?name=Twin", sent);
  const twin = /"id":"(ent_\w+)"/.exec(made.bodies[0] ?? "")?.[1];
  expect((await call(`/v1/agents/${twin}`, { method: "DELETE", bearer })).status).toBe(204);
  expect(await rowsWith(env.WORKSPACE.getByName(workspaceId), "Twin")).toEqual([]);
  const again = await call("/v1/imports?name=Twin", { ...sent, headers: { ...sent.headers, ...made.headers } });
  expect(await problemIn(again)).toMatchObject({ code: "gone" });
});
