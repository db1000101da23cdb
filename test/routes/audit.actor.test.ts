import { beforeAll, expect, test, vi } from "vitest";
import * as z from "zod";
import { AuditEntry } from "../../src/protocol/audit.ts";
import { SignInLink } from "../../src/protocol/workspace.ts";
import { jsonHash } from "../../src/shared/canonical-json.ts";
import { armFault } from "../../src/shared/fault.ts";
import { Workspace } from "../../src/workspace/workspace.ts";
import { type Call, call, expectOk, type House, ids, openHouse, type Participant } from "../support/house.ts";
import { outsideCall, outsideCaller } from "../support/outside-call.ts";
import { question } from "../support/question.ts";

let house: House;
let boss: Participant;
let mona: Participant;
let agentId = "";
let spaceId = "";

beforeAll(async () => {
  house = await openHouse();
  [boss, mona] = [await house.person("Boss", "admin"), await house.person("Mona")];
  agentId = (await house.agent({ name: "Robo" })).id;
  spaceId = (await house.space("Lab", [mona, { id: agentId }])).id;
}, 60_000);

const Page = z.object({ items: z.array(AuditEntry), nextCursor: z.string().nullable() });
type Entry = z.infer<typeof AuditEntry>;

const entries = async (query: string, bearer = house.secretKey): Promise<Entry[]> =>
  (await expectOk(Page, call(`/v1/workspace/audit?${query}`, { bearer }))).items;

const done = async (path: string, asked: Call): Promise<void> => {
  const answer = await call(path, { bearer: house.secretKey, ...asked });
  expect(answer.status, `${path}: ${await answer.clone().text()}`).toBeLessThan(300);
  await answer.body?.cancel();
};

test("[L3] the audit log says who did what to keys, secrets, roles, people, settings and agents", async () => {
  const created = await expectOk(
    z.object({ key: z.object({ id: z.string() }), secretKey: z.string() }),
    call("/v1/workspace/keys", { method: "POST", bearer: house.secretKey, body: { name: "ci", scopes: ["read"] } }),
  );
  const keyId = created.key.id;
  await done(`/v1/workspace/keys/${keyId}/roll`, { method: "POST", body: {} });
  await done(`/v1/workspace/keys/${keyId}`, { method: "DELETE" });
  await done("/v1/workspace/secrets/JIRA", { method: "PUT", body: { value: "hidden-value" } });
  await done("/v1/workspace/secrets/JIRA", { method: "DELETE" });
  const eve = await house.person("Eve");
  await done(`/v1/entities/${eve.id}`, { method: "PATCH", bearer: boss.token, body: { role: "admin" } });
  await done(`/v1/entities/${eve.id}`, { method: "DELETE", as: mona.id });
  await done("/v1/workspace", { method: "PATCH", bearer: boss.token, body: { name: "Home" } });
  const robot = await house.agent({ name: "Short-lived" });
  const document = await call(`/v1/agents/${robot.id}/export`, { bearer: boss.token });
  await document.text();
  await done(`/v1/agents/${robot.id}`, { method: "DELETE" });

  const key = { id: house.keyId };
  expect(await entries(`target=${keyId}`)).toMatchObject([
    { action: "key.revoked", actor: key },
    { action: "key.rolled", actor: key },
    { action: "key.created", actor: key, detail: { name: "ci", scopes: "read" } },
  ]);
  expect(await entries("target=JIRA")).toMatchObject([{ action: "secret.deleted" }, { action: "secret.put" }]);
  expect(await entries(`target=${eve.id}`)).toMatchObject([
    { action: "entity.removed", actor: { ...key, as: mona.id } },
    { action: "entity.role_changed", actor: { id: boss.id }, detail: { from: "member", to: "admin" } },
    { action: "token.minted", actor: key },
  ]);
  expect(await entries("action=workspace.changed")).toMatchObject([{ actor: { id: boss.id } }]);
  expect(await entries(`target=${robot.id}`)).toMatchObject([
    { action: "agent.deleted", actor: key },
    { action: "agent.exported", actor: { id: boss.id } },
  ]);
  expect(await entries("actor=operator")).toMatchObject([{ action: "workspace.created" }]);
  const whole = JSON.stringify(await entries("limit=100"));
  expect(whole).not.toContain("hidden-value");
  expect(whole).not.toContain(created.secretKey);
});

test("[L3] each change of an agent's config is noted by its fields' names, without values", async () => {
  const robot = await house.agent({ name: "Changing" });
  const path = `/v1/agents/${robot.id}`;
  const model = { provider: "rehearsal", deltasPerSecond: 0 };
  await done(path, { method: "PATCH", bearer: boss.token, body: { name: "Changed", model } });
  await done(path, { method: "PATCH", body: { instructions: "Never tell of the vineyard" } });
  expect((await call(path, { method: "PATCH", bearer: boss.token, body: { model: { alias: "none" } } })).status).toBe(
    422,
  );
  const known = `action=agent.changed&target=${robot.id}`;
  await vi.waitFor(async () => expect(await entries(known)).toHaveLength(2));
  expect(await entries(known)).toMatchObject([
    { actor: { id: house.keyId }, detail: { fields: "instructions" } },
    { actor: { id: boss.id }, detail: { fields: "model name" } },
  ]);
  expect(JSON.stringify(await entries("limit=100"))).not.toContain("vineyard");
});

test("[L3] a change of an agent's config is noted though the agent is deleted before that", async () => {
  const robot = await house.agent({ name: "Passing" });
  const path = `/v1/agents/${robot.id}`;
  const noting = vi.spyOn(Workspace.prototype, "noteAudit").mockRejectedValueOnce(new Error("out of reach"));
  await done(path, { method: "PATCH", bearer: boss.token, body: { instructions: "Be brief" } });
  await vi.waitFor(() => expect(noting).toHaveBeenCalledTimes(1));
  await done(path, { method: "DELETE" });
  const known = () => entries(`action=agent.changed&target=${robot.id}`);
  await vi.waitFor(async () => expect(await known()).toMatchObject([{ actor: { id: boss.id } }]));
  noting.mockRestore();
});

test("[L3] who makes an admin, or says whose JWT a person comes by, is noted", async () => {
  const body = { type: "human", name: "Second", role: "admin" };
  const OneEntity = z.object({ entity: z.object({ id: z.string() }) });
  const { entity } = await expectOk(OneEntity, call("/v1/entities", { bearer: boss.token, body }));
  await done(`/v1/entities/${entity.id}`, { method: "PATCH", body: { externalId: "second@example" } });
  expect(await entries(`target=${entity.id}`)).toMatchObject([
    { action: "entity.identified", actor: { id: house.keyId } },
    { action: "entity.role_changed", actor: { id: boss.id }, detail: { to: "admin" } },
  ]);
  const plain = { type: "human", name: "Third" };
  const third = await expectOk(OneEntity, call("/v1/entities", { bearer: boss.token, body: plain }));
  expect(await entries(`target=${third.entity.id}`)).toEqual([]);
});

test("[L3] [C19] each change of retention is noted, and not how much is said in the space", async () => {
  const board = await house.space("Board", [mona], { confidential: true });
  const keepFor = (retentionDays: number) =>
    done(`/v1/spaces/${board.id}`, { method: "PATCH", bearer: boss.token, body: { retentionDays } });
  await keepFor(30);
  await house.say(board.id, mona, "What the boss does not count");
  await keepFor(1);
  const [now, before] = [{ days: 1 }, { days: 30 }].map((detail) => ({ action: "space.retention", detail }));
  const known = `action=space.retention&target=${board.id}`;
  await vi.waitFor(async () => expect(await entries(known)).toHaveLength(2));
  const noted = await entries(known);
  expect(noted.map(({ action, detail }) => ({ action, detail }))).toEqual([now, before]);
});

test("[L3] an admin's looks into an agent's mind are noted, once an hour; a key's are not", async () => {
  const said = await house.say(spaceId, mona, "Read by way of the agent");
  const mind = `/v1/agents/${agentId}`;
  await vi.waitFor(async () => {
    const found = await call(`${mind}/search?q=${encodeURIComponent("way of the agent")}`, { bearer: house.secretKey });
    expect(await found.text()).toContain(said.id);
  });
  const read = `action=agent.read&target=${agentId}`;
  expect(await entries(read)).toEqual([]);
  for (const path of ["search?q=agent", "runs", "context", "inbox"])
    await done(`${mind}/${path}`, { bearer: boss.token });
  expect(await entries(read)).toMatchObject([{ actor: { id: boss.id } }]);
});

test("[L3] an admin who follows a block, or lists waiting calls, is noted as reading its agent", async () => {
  const [writer, caller] = [(await house.agent({ name: "Writer" })).id, await outsideCaller(house)];
  const blocks = `/v1/agents/${writer}/blocks`;
  await done(blocks, { body: { label: "notes", type: "working", content: "Said in the lab" } });
  await outsideCall(house, caller);
  for (const bearer of [house.secretKey, boss.token]) {
    const { webSocket } = await call(`${blocks}/notes/stream`, { bearer, headers: { upgrade: "websocket" } });
    webSocket?.accept();
    webSocket?.close();
    await done("/v1/tool-calls", { bearer });
    const readers = async (agent: string) =>
      (await entries(`action=agent.read&target=${agent}`)).map((each) => each.actor.id);
    const noted = bearer === house.secretKey ? [] : [boss.id];
    expect([await readers(writer), await readers(caller)]).toEqual([noted, noted]);
  }
});

test.each<[string, (agent: string, space: string) => string, Call]>([
  ["a change that changes nothing", (agent) => `agents/${agent}/blocks/notes`, { method: "PATCH", body: {} }],
  [
    "an edit",
    (agent) => `agents/${agent}/blocks/notes/operations`,
    { body: { operations: [{ op: "append_text", text: "!" }] } },
  ],
  ["a space's list", (_, space) => `spaces/${space}/blocks`, {}],
  ["a space's block", (agent, space) => `spaces/${space}/agents/${agent}/blocks/notes`, {}],
])("[L3] an admin who reads a block by %s is noted", async (way, path, asked) => {
  const agent = (await house.agent({ name: `Keeper for ${way}` })).id;
  const space = (await house.space("Pantry", [mona, { id: agent }])).id;
  const blocks = `/v1/agents/${agent}/blocks`;
  await done(blocks, { body: { label: "notes", type: "working", content: "Said in the lab" } });
  await done(`${blocks}/notes/spaces/${space}`, { method: "PUT", body: {} });
  await call(`/v1/${path(agent, space)}`, { bearer: mona.token, ...asked });
  for (const bearer of [house.secretKey, boss.token]) {
    const told = await call(`/v1/${path(agent, space)}`, { bearer, ...asked });
    expect(await told.text()).toContain("Said in the lab");
  }
  expect(await entries(`action=agent.read&target=${agent}`)).toMatchObject([{ actor: { id: boss.id } }]);
});

test("[L3] an admin who cancels a run, and so reads what began it, is noted", async () => {
  const caller = await outsideCaller(house);
  await outsideCall(house, caller);
  const runs = z.object({ items: z.array(z.object({ id: z.string(), trigger: z.object({ text: z.string() }) })) });
  const { items } = await expectOk(runs, call(`/v1/agents/${caller}/runs`, { bearer: house.secretKey }));
  const path = `/v1/agents/${caller}/runs/${items[0]?.id}/cancel`;
  const told = await call(path, { method: "POST", bearer: boss.token });
  expect(await told.text()).toContain(items[0]?.trigger.text);
  expect(await entries(`action=agent.read&target=${caller}`)).toMatchObject([{ actor: { id: boss.id } }]);
});

test("[L3] [S4] an admin who asks an agent for what it never had is not noted as reading", async () => {
  const { id: agent } = await house.agent({ name: "Empty" });
  const [event, run] = [ids.deriveOwned("evt", agent, "none"), ids.deriveOwned("run", agent, "none")];
  for (const path of [`inbox/${event}/retry`, `runs/${run}/cancel`]) {
    const refused = await call(`/v1/agents/${agent}/${path}`, { method: "POST", bearer: boss.token });
    expect(refused.status).toBe(404);
  }
  const edit = { operations: [{ op: "append_text", text: "!" }] };
  await call(`/v1/agents/${agent}/blocks/none/operations`, { bearer: boss.token, body: edit });
  expect(await entries(`action=agent.read&target=${agent}`)).toEqual([]);
});

test("[L3] sign-ins, sign-outs and tokens for others are noted, with who stands behind them", async () => {
  const sessions: string[] = [];
  const ways = [
    [house.secretKey, {}],
    [boss.token, { impersonatedBy: boss.id }],
  ] as const;
  for (const [bearer, by] of ways) {
    const links = `/v1/entities/${mona.id}/sign-in-links`;
    const { link } = await expectOk(SignInLink, call(links, { method: "POST", bearer }));
    const headers = { origin: "https://colloquy.test", "sec-fetch-site": "same-origin" };
    const code = link.split("#sign-in=")[1];
    const signedIn = await call("/v1/session", { headers, body: { code, replace: true } });
    expect(signedIn.status).toBe(201);
    sessions.push(signedIn.headers.get("set-cookie")?.split(";")[0] ?? "");
    const [made] = await entries("action=link.made&limit=1");
    expect(made).toMatchObject({
      actor: { id: bearer === boss.token ? boss.id : expect.stringMatching(/^key_/) },
      target: mona.id,
    });
    const [entry] = await entries("action=session.began&limit=1");
    expect(entry?.actor).toEqual({ id: mona.id, ...by });
  }
  const cookie = sessions[0] ?? "";
  const own = { origin: "https://colloquy.test", "sec-fetch-site": "same-origin", cookie };
  await done("/v1/session", { method: "DELETE", bearer: "", headers: own });
  expect(await entries("action=session.ended")).toMatchObject([{ actor: { id: mona.id } }]);

  const minted = `action=token.minted&target=${mona.id}&actor=${boss.id}`;
  const mint = (entityId: string) => done("/v1/tokens", { bearer: boss.token, body: { entityId } });
  for (const entityId of [mona.id, mona.id, boss.id]) await mint(entityId);
  expect(await entries(minted)).toHaveLength(1);
  expect(await entries(`action=token.minted&target=${boss.id}&actor=${boss.id}`)).toEqual([]);
});

test("[L3] an approval is noted once through a crash, with the hash shown and no words", async () => {
  const asked = await question(house.workspaceId, spaceId, agentId, "approval");
  const inputHash = jsonHash({ of: ["red", "blue"] });
  const crashed = armFault("workspace.before-answer");
  await done(`/v1/spaces/${spaceId}/tool-calls/${asked}/result`, {
    bearer: mona.token,
    body: { result: { approved: true, inputHash, note: "said in confidence" } },
  });
  await crashed;
  await vi.waitFor(async () => {
    const found = await entries("action=approval.answered");
    expect(found).toMatchObject([
      { actor: { id: mona.id }, target: asked, detail: { spaceId, approved: true, inputHash } },
    ]);
    expect(JSON.stringify(found)).not.toMatch(/in confidence|"red"/);
  });
});

test("[L3] only admins who are not in a space have their reads noted, once an hour", async () => {
  const { id } = await house.say(spaceId, mona, "Hello");
  const messages = `/v1/spaces/${spaceId}/messages`;
  for (const bearer of [mona.token, house.secretKey, boss.token, boss.token]) await done(messages, { bearer });
  const read = `action=space.read&target=${spaceId}`;
  await vi.waitFor(async () => expect(await entries(read)).toMatchObject([{ actor: { id: boss.id } }]));
  await done(`${messages}/${id}/reads`, { bearer: boss.token });
  await done(`${messages}/${id}`, { method: "DELETE", bearer: boss.token });
  await vi.waitFor(async () => expect(await entries("action=message.deleted")).toHaveLength(1));
  expect(await entries(read)).toHaveLength(1);
});

test("[C19] the audit log does not tell who said what was deleted in a confidential space", async () => {
  const vault = (await house.space("Vault", [mona], { confidential: true })).id;
  const { id } = await house.say(vault, mona, "In here alone");
  await done(`/v1/spaces/${vault}/messages/${id}`, { method: "DELETE", bearer: house.secretKey });
  await vi.waitFor(async () => expect(await entries(`target=${id}`)).toMatchObject([{ action: "message.deleted" }]));
  expect(JSON.stringify(await entries(`target=${id}`))).not.toContain(mona.id);
});

test("[L3] deletions of a message and of a space are noted by the space's own job", async () => {
  const den = (await house.space("Den", [mona])).id;
  const { id } = await house.say(den, mona, "Take it back");
  await done(`/v1/spaces/${den}/messages/${id}`, { method: "DELETE", bearer: mona.token });
  await done(`/v1/spaces/${den}`, { method: "DELETE", bearer: boss.token });
  await vi.waitFor(async () => {
    expect(await entries(`target=${den}`)).toMatchObject([{ action: "space.deleted", actor: { id: boss.id } }]);
    const [deleted] = await entries(`target=${id}`);
    expect(deleted).toMatchObject({ actor: { id: mona.id }, detail: { spaceId: den, sender: mona.id } });
  });
});

test("[L3] the log is paged newest first, filtered by time, and exported as lines of JSON", async () => {
  const all = await entries("limit=100");
  const paged: Entry[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const path: string = `/v1/workspace/audit?limit=3${cursor && `&cursor=${cursor}`}`;
    const page: z.infer<typeof Page> = await expectOk(Page, call(path, { bearer: boss.token }));
    paged.push(...page.items);
    cursor = page.nextCursor;
  }
  expect(paged).toEqual(all);
  expect(all.at(-1)?.action).toBe("workspace.created");
  const from = all[2]?.at ?? "";
  expect(await entries(`limit=100&from=${from}`)).toEqual(all.filter(({ at }) => at >= from));
  expect(await entries(`limit=100&to=${from}`)).toEqual(all.filter(({ at }) => at < from));
  const exported = await call("/v1/workspace/audit/export", { bearer: boss.token });
  expect(exported.headers.get("content-type")).toBe("application/x-ndjson");
  const lines = (await exported.text()).trimEnd().split("\n");
  const [first, ...rest] = lines.map((line) => AuditEntry.parse(JSON.parse(line)));
  expect(first).toMatchObject({ action: "audit.exported", actor: { id: boss.id } });
  expect(rest).toEqual(all);
  expect((await call("/v1/workspace/audit?action=unheard", { bearer: boss.token })).status).toBe(400);
});
