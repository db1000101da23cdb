import { env } from "cloudflare:workers";
import { beforeAll, expect, test, vi } from "vitest";
import * as z from "zod";
import { Agent as AgentObject } from "../../src/agent/agent.ts";
import { Agent } from "../../src/protocol/agent.ts";
import { Space } from "../../src/protocol/space.ts";
import { ok, unwrap } from "../../src/shared/errors.ts";
import { type Call, expectOk, type House, openHouse, type Participant, call as request } from "../support/house.ts";
import { problemIn } from "./operations.ts";

/** An agent in Board, which is confidential. Ada is an admin who is in it too, Boss one who is not. */
const mine = { provider: "openai-compatible" as const, name: "a-model", baseUrl: "https://mine.example/v1" };
const tool = { name: "mail", description: "Mails", executionType: "external" };
const allowed = { confidential: "allowed" };
const elsewhere = {
  model: { model: mine },
  context: { context: { compaction: { strategy: "recursive_summarization", model: mine } } },
  tools: { tools: [{ ...tool, ...allowed }] },
};

let house: House;
let ada: Participant;
let boss: Participant;
let agent: { id: string };
let boardId: string;

const asKey = (path: string, asked: Call = {}) => request(path, { bearer: house.secretKey, ...asked });
const add = (spaceId: string, { id: entityId }: { id: string }) =>
  asKey(`/v1/spaces/${spaceId}/members`, { body: { entityId } });
/** A confidential space, of which the agent has something. */
const openSpace = async (name: string, members: { id: string }[]) => {
  const { id } = await house.space(name, [...members, agent], { confidential: true });
  const begun = async () => expect((await asKey(`/v1/agents/${agent.id}?space=${id}`)).status).toBe(200);
  await vi.waitFor(begun, { timeout: 15_000 });
  return id;
};
const patch = (body: object, who?: Participant) =>
  asKey(`/v1/agents/${agent.id}`, { method: "PATCH", body, ...(who ? { bearer: who.token } : {}) });
const status = async (...args: Parameters<typeof patch>) => (await patch(...args)).status;
/** A block of an agent, and what its shares are answered to somebody. */
const openBlock = async (owner: { id: string }, label: string, settings: object = {}) => {
  const at = `/v1/agents/${owner.id}/blocks`;
  expect((await asKey(at, { body: { label, ...settings } })).status).toBe(201);
  const send = (path: string, method: string, body: object, who?: Participant) =>
    asKey(`${at}/${label}${path}`, { method, body, ...(who ? { bearer: who.token } : {}) });
  return {
    allow: (who?: Participant) => send("", "PATCH", allowed, who),
    share: (permission: string, who?: Participant) => send(`/shares/${agent.id}`, "PUT", { permission }, who),
    shareWithBoard: (who?: Participant) => send(`/spaces/${boardId}`, "PUT", { permission: "ReadWrite" }, who),
    /** As a compartment of the agent asks for it. */
    inside: async () => {
      const found = await env.AGENT.getByName(owner.id).block(house.workspaceId, label, undefined, agent.id, true);
      return found.ok ? found.value.permission : found.problem.code;
    },
  };
};
const refusal = async (answer: Promise<Response>) => (await problemIn(await answer)).detail;
const config = async () => (await expectOk(z.object({ agent: Agent }), asKey(`/v1/agents/${agent.id}`))).agent.config;

// The first request brings the whole worker up.
beforeAll(async () => {
  house = await openHouse();
  [ada, boss] = [await house.person("Ada", "admin"), await house.person("Boss", "admin")];
  agent = await house.agent({ name: "Analyst" });
  boardId = await openSpace("Board", [ada]);
}, 60_000);

test.each(Object.entries(elsewhere))(
  "[C19] an admin who is no member lets no confidential words out by an agent's %s",
  async (field, changes) => {
    const before = await config();
    const problem = await problemIn(await patch({ name: "Mole", instructions: "Tell", ...changes }, boss));
    expect(problem).toMatchObject({ code: "forbidden", detail: expect.stringContaining(`(${field})`) });
    expect(problem.detail).toMatch(/"Board".*Join/);
    expect(await config()).toEqual(before);
  },
);

test("[C19] nor tells such an admin a model what the program of a guest alone was told", async () => {
  const courier = await house.agent({ name: "Courier", runtime: "guest" });
  const { id } = await house.space("Attic", [ada, courier], { confidential: true });
  const begun = async () => expect((await asKey(`/v1/agents/${courier.id}?space=${id}`)).status).toBe(200);
  await vi.waitFor(begun, { timeout: 15_000 });
  const change = ({ token: bearer }: Participant) =>
    asKey(`/v1/agents/${courier.id}`, { method: "PATCH", body: { runtime: "house" }, bearer });
  expect(await refusal(change(boss))).toMatch(/"Attic" .*\(model\).*Join/);
  expect((await change(ada)).status).toBe(200);
});

test("[C19] an admin who is no member has no compartment write into a block, in whatever order", async () => {
  const scribe = await house.agent({ name: "Scribe" });
  const first = await openBlock(scribe, "first");
  expect((await first.share("ReadWrite", boss)).status).toBe(200);
  expect(await refusal(first.allow(boss))).toMatch(/"Board" .*\(the block "first"\).*Join/);
  expect(await first.inside()).toBe("not_found");
  const second = await openBlock(scribe, "second", allowed);
  expect(await refusal(second.share("Append", boss))).toMatch(/"Board" .*\(the block "second"\).*Join/);
  expect(await second.inside()).toBe("not_found");
  expect((await second.share("ReadOnly", boss)).status).toBe(200);
  expect(await second.inside()).toBe("ReadOnly");
  // A reader of the space may allow it. Then others may take something of it away.
  expect((await first.allow(ada)).status).toBe(200);
  expect((await second.share("ReadWrite", ada)).status).toBe(200);
  expect((await second.share("Append", boss)).status).toBe(200);
  expect([await first.inside(), await second.inside()]).toEqual(["ReadWrite", "Append"]);
  expect((await second.share("ReadWrite", boss)).status).toBe(403);
  expect((await second.share("Admin")).status).toBe(200);
});

test("[C19] a block that is shared while others are asked about its allowance is not opened", async () => {
  const [scribe, other] = [await house.agent({ name: "Racer" }), await house.agent({ name: "Other" })];
  const block = await openBlock(scribe, "late");
  await asKey(`/v1/agents/${scribe.id}/blocks/late/shares/${other.id}`, { method: "PUT", body: {} });
  vi.spyOn(AgentObject.prototype, "confidentialSpaces").mockImplementationOnce(async () => {
    await block.share("ReadWrite", boss);
    return ok([]);
  });
  expect(await problemIn(await block.allow(boss))).toMatchObject({ code: "conflict" });
  expect(await block.inside()).toBe("not_found");
});

test("[C19] nor do the people of a confidential space write by such an admin's word", async () => {
  const shared = await openBlock(agent, "shared");
  expect((await shared.shareWithBoard(boss)).status).toBe(200);
  expect(await refusal(shared.allow(boss))).toContain('What is said in "Board"');
  const vault = await openBlock(agent, "vault", allowed);
  expect(await refusal(vault.shareWithBoard(boss))).toContain('What is said in "Board"');
  for (const answer of [shared.allow(ada), vault.shareWithBoard(ada)]) expect((await answer).status).toBe(200);
});

test("[C19] such an admin changes the rest, and takes tools from confidential spaces", async () => {
  expect(await status(elsewhere.tools, ada)).toBe(200);
  const rest = { name: "Vega", instructions: "Be kind.", limits: { maxTokensPerDay: 5000 } };
  expect(await status({ ...rest, tools: [{ ...tool, name: "look" }, ...elsewhere.tools.tools] }, boss)).toBe(200);
  expect(await status({ tools: [tool] }, boss)).toBe(200);
  expect(await config()).toMatchObject(rest);
});

test("[C19] a secret key and an admin who is in each of its confidential spaces do so", async () => {
  const otherId = await openSpace("Other", []);
  expect(await status(elsewhere.tools)).toBe(200);
  const { detail } = await problemIn(await patch(elsewhere.context, ada));
  expect(detail).toMatch(/^What is said in "Other" would/);
  await add(otherId, ada);
  expect(await status(elsewhere.context, ada)).toBe(200);
  // The agent keeps what it has from there when it has left.
  await asKey(`/v1/spaces/${boardId}/members/${agent.id}`, { method: "DELETE" });
  await add(otherId, boss);
  expect(await status(elsewhere.model, boss)).toBe(403);
  await add(boardId, boss);
  expect(await status(elsewhere.model, boss)).toBe(200);
});

test("[C19] nor does it begin to write others' blocks by tools that such an admin gives it", async () => {
  const [den, owner] = [await house.person("Dena"), await house.agent({ name: "Owner" })];
  const rule = { tool: "block_edit", rule: "requires_prior", tools: ["get_plans"] };
  const [mute, bound] = [
    await house.agent({ name: "Mute", memoryTools: false }),
    await house.agent({ name: "Bound", toolRules: [rule] }),
  ];
  const change = ({ id }: { id: string }, body: object, bearer: string) =>
    asKey(`/v1/agents/${id}`, { method: "PATCH", body, bearer });
  const changes = [
    [mute, { memoryTools: true }, { memoryTools: false }],
    [bound, { toolRules: [] }, { toolRules: [rule] }],
  ] as const;
  await house.space("Loft", [ada, den, mute, bound], { confidential: true });
  for (const [writer, body, back] of changes) {
    expect((await change(writer, body, boss.token)).status).toBe(200);
    expect((await change(writer, back, boss.token)).status).toBe(200);
  }
  const at = `/v1/agents/${owner.id}/blocks`;
  expect((await asKey(at, { body: { label: "log", ...allowed } })).status).toBe(201);
  for (const [writer, body] of changes) {
    const share = { method: "PUT", body: { permission: "ReadWrite" } };
    expect((await asKey(`${at}/log/shares/${writer.id}`, share)).status).toBe(200);
    expect(await problemIn(await change(writer, body, boss.token))).toMatchObject({ code: "forbidden" });
    expect((await change(writer, body, ada.token)).status).toBe(200);
  }
});

test("[C19] a space that becomes confidential takes its agents as they are by then", async () => {
  const stub = env.AGENT.getByName(agent.id);
  const { id } = await house.space("Later", [agent]);
  expect(await status({ model: { ...mine, name: "other" } }, boss)).toBe(200);
  await asKey(`/v1/spaces/${id}`, { method: "PATCH", body: { confidential: true } });
  const exposed = async () => unwrap(await stub.checkUpdate(house.workspaceId, elsewhere.model)).spaces;
  await vi.waitFor(async () => expect(await exposed()).toContain(id), { timeout: 10_000 });
  expect(await status(elsewhere.model, boss)).toBe(403);
  // The agent looks again itself: it may have come into a space since the route did.
  const late = await stub.update(house.workspaceId, elsewhere.model, [boardId]);
  expect(late).toMatchObject({ ok: false, problem: { code: "forbidden" } });
});

const routerTo = (host: string) => ({ model: { ...mine, baseUrl: `https://${host}.example/v1` } });
const routed = { wakePolicy: "addressed", confidential: true, router: routerTo("first") };
const OneSpace = z.object({ space: Space });
const patchSpace = (id: string, body: object, { token }: Participant) =>
  asKey(`/v1/spaces/${id}`, { method: "PATCH", body, bearer: token });

test("[C19] a router stays when its admin has left: members see it, and any admin takes it away", async () => {
  const [mona, eve] = [await house.person("Mona"), await house.person("Eve", "admin")];
  const members = [{ entityId: mona.id }, { entityId: ada.id }];
  const made = asKey("/v1/spaces", { body: { name: "Den", members, ...routed }, bearer: eve.token });
  const { id } = (await expectOk(OneSpace, made)).space;
  const seenBy = async ({ token }: Participant) =>
    (await expectOk(OneSpace, asKey(`/v1/spaces/${id}`, { bearer: token }))).space.router;
  expect(await seenBy(eve)).toMatchObject(routed.router);
  await asKey(`/v1/spaces/${id}/members/${eve.id}`, { method: "DELETE", bearer: eve.token });
  expect([await seenBy(eve), await seenBy(boss)]).toEqual([undefined, undefined]);
  expect((await expectOk(OneSpace, patchSpace(id, { name: "Lair" }, eve))).space.router).toBeUndefined();
  expect(await seenBy(mona)).toMatchObject(routed.router);
  expect((await patchSpace(id, { router: routerTo("second") }, eve)).status).toBe(403);
  expect((await patchSpace(id, { router: routerTo("second") }, ada)).status).toBe(200);
  expect(await seenBy(mona)).toMatchObject(routerTo("second"));
  expect((await patchSpace(id, { router: null }, eve)).status).toBe(200);
  expect(await seenBy(mona)).toBeUndefined();
});

test("[C19] an admin who is no member lets no words out of a space, and begins no router", async () => {
  const settings = { ...routed, wakePolicy: "every_message" };
  const { id } = await house.space("Loft", [ada], { ...settings, release: { quorum: 2 } });
  const eve = await house.person("Eva", "admin");
  for (const change of [{ release: { quorum: 1 } }, { wakePolicy: "addressed" }]) {
    const { code, detail } = await problemIn(await patchSpace(id, change, eve));
    expect([code, detail]).toEqual(["forbidden", expect.stringContaining("join it first")]);
    expect((await patchSpace(id, change, ada)).status).toBe(200);
  }
  expect((await patchSpace(id, { release: null, wakePolicy: "every_message" }, eve)).status).toBe(200);
  const later = await house.space("Porch", [ada]);
  expect((await patchSpace(later.id, { confidential: true, release: {} }, eve)).status).toBe(403);
  expect((await patchSpace(later.id, { confidential: true }, eve)).status).toBe(200);
});

test("[C19] nor does such an admin begin a router by whom they add", async () => {
  const eve = await house.person("Evelyn", "admin");
  const [zoe, robo] = [await house.person("Zoe"), await house.agent({ name: "Robo" })];
  const pair = await house.space("Shed", [ada, robo], routed);
  const people = await house.space("Barn", [ada, zoe], routed);
  for (const [{ id }, one] of [
    [pair, zoe],
    [people, robo],
  ] as const) {
    const join = (bearer?: string) =>
      asKey(`/v1/spaces/${id}/members`, { body: { entityId: one.id }, ...(bearer !== undefined && { bearer }) });
    expect(await problemIn(await join(eve.token))).toMatchObject({ code: "forbidden" });
    expect((await join(ada.token)).status).toBe(201);
  }
  const lively = asKey(`/v1/spaces/${people.id}/members`, { body: { entityId: boss.id }, bearer: eve.token });
  expect((await lively).status).toBe(201);
});

test("[C19] an admin joins a confidential space also where a router begins with them", async () => {
  const [eve, robo] = [await house.person("Eveline", "admin"), await house.agent({ name: "Rob" })];
  const { id } = await house.space("Hut", [ada, robo], routed);
  const join = asKey(`/v1/spaces/${id}/members`, { body: { entityId: eve.id }, bearer: eve.token });
  expect((await join).status).toBe(201);
});

test("[C19] a session that an admin made for another begins no routed confidential space", async () => {
  const session = asKey("/v1/tokens", { body: { entityId: ada.id }, bearer: boss.token });
  const { token } = await expectOk(z.object({ token: z.string() }), session);
  const begin = (bearer: string, more: object) => asKey("/v1/spaces", { body: { name: "Nook", ...more }, bearer });
  expect(await problemIn(await begin(token, routed))).toMatchObject({ code: "forbidden" });
  expect((await begin(token, { ...routed, confidential: false })).status).toBe(201);
  expect((await begin(token, { ...routed, members: [{ entityId: boss.id }] })).status).toBe(201);
});
