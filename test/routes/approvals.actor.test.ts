import { beforeAll, expect, test } from "vitest";
import * as z from "zod";
import { Message } from "../../src/protocol/message.ts";
import { Token, Workspace } from "../../src/protocol/workspace.ts";
import { jsonHash } from "../../src/shared/canonical-json.ts";
import { call, expectOk, type House, openHouse, type Participant } from "../support/house.ts";
import { question } from "../support/question.ts";
import { cookieBy, withCookie } from "../support/session.ts";
import { problemIn } from "./operations.ts";

/** Sessions that an admin made for another person: they may talk, not approve, by HTTP and by socket. */
let house: House;
let boss: Participant;
let chief: Participant;
let mona: Participant;
let agentId = "";
let spaceId = "";

beforeAll(async () => {
  house = await openHouse();
  [boss, chief] = [await house.person("Boss", "admin"), await house.person("Chief", "admin")];
  mona = await house.person("Mona");
  agentId = (await house.agent({ name: "Robo" })).id;
  spaceId = (await house.space("Lab", [mona, chief, { id: agentId }])).id;
});

/** A token for the entity that the bearer asks for. */
const tokenFor = async (entityId: string, bearer: string): Promise<string> =>
  (await expectOk(Token, call("/v1/tokens", { bearer, body: { entityId } }))).token;

const ask = (): Promise<string> => question(house.workspaceId, spaceId, agentId, "approval");
const yes = { approved: true, inputHash: jsonHash({ of: ["red", "blue"] }) };

const answer = (toolCallId: string, bearer: string, result: unknown = yes): Promise<Response> =>
  call(`/v1/spaces/${spaceId}/tool-calls/${toolCallId}/result`, { bearer, body: { result } });

const allow = (impersonatedApprovals: string, bearer = house.secretKey): Promise<Response> =>
  call("/v1/workspace", { method: "PATCH", bearer, body: { impersonatedApprovals } });

const statusOf = async (toolCallId: string): Promise<string | undefined> => {
  const path = `/v1/spaces/${spaceId}/messages?limit=200`;
  const { items } = await expectOk(z.object({ items: z.array(Message) }), call(path, { bearer: mona.token }));
  return items.find(({ toolCall }) => toolCall?.id === toolCallId)?.toolCall?.status;
};

test("[C3] a session that an admin made for another person may talk, and not approve or reject", async () => {
  const session = await tokenFor(mona.id, boss.token);
  const asked = await ask();
  for (const result of [yes, { approved: false }]) {
    const refused = await problemIn(await answer(asked, session, result));
    expect(refused).toMatchObject({ status: 403, code: "forbidden" });
    expect(refused.detail).toContain("impersonatedApprovals");
  }
  expect(await statusOf(asked)).toBe("requires_action");
  const said = await call(`/v1/spaces/${spaceId}/messages`, { bearer: session, body: { text: "Hello" } });
  expect(said.status).toBe(201);
  const chosen = await question(house.workspaceId, spaceId, agentId);
  expect((await answer(chosen, session, "red")).status).toBe(200);
  expect((await answer(asked, mona.token)).status).toBe(200);
});

test("[C3] tokens of a secret key, and those an admin mints for itself, are the person's own", async () => {
  const own = await tokenFor(chief.id, chief.token);
  for (const bearer of [mona.token, own]) expect((await answer(await ask(), bearer)).status).toBe(200);
  const acting = { bearer: house.secretKey, as: mona.id, body: { result: yes } };
  expect((await call(`/v1/spaces/${spaceId}/tool-calls/${await ask()}/result`, acting)).status).toBe(200);
});

test("[C3] nobody washes the mark off by minting again", async () => {
  const asChief = await tokenFor(chief.id, boss.token);
  const washed = await tokenFor(chief.id, asChief);
  const twice = await tokenFor(mona.id, washed);
  const asked = await ask();
  for (const bearer of [asChief, washed, twice]) expect((await answer(asked, bearer)).status).toBe(403);
  expect((await allow("allowed", asChief)).status).toBe(403);
  expect((await allow("allowed", boss.token)).status).toBe(403);
  expect(await statusOf(asked)).toBe("requires_action");
});

test("[C3] an impersonated session approves where the workspace allows it; the record says so", async () => {
  const session = await tokenFor(mona.id, boss.token);
  const set = await expectOk(z.object({ workspace: Workspace }), allow("allowed"));
  expect(set.workspace).toMatchObject({ name: "House", impersonatedApprovals: "allowed" });
  const asked = await ask();
  const { message } = await expectOk(z.object({ message: Message }), answer(asked, session));
  expect(message.toolCall?.awaits?.answers).toMatchObject([
    { entityId: mona.id, approved: true, impersonatedBy: boss.id, inputHash: yes.inputHash },
  ]);
  await allow("refused");
  expect((await answer(await ask(), session)).status).toBe(403);
  const odd = await problemIn(await allow("perhaps"));
  expect(odd).toMatchObject({ code: "invalid_request", issues: [{ path: "impersonatedApprovals" }] });
});

test("[C3] an impersonated yes counts while that is allowed, and its person takes its place", async () => {
  const session = await tokenFor(mona.id, boss.token);
  await allow("allowed");
  const asked = [0, 1].map(() => question(house.workspaceId, spaceId, agentId, "approval", undefined, 2));
  const [one = "", other = ""] = await Promise.all(asked);
  for (const id of [one, other]) expect((await answer(id, session)).status).toBe(200);
  expect((await answer(other, chief.token)).status).toBe(200);
  await allow("refused");
  expect((await answer(one, chief.token)).status).toBe(200);
  expect([await statusOf(one), await statusOf(other)]).toEqual(["requires_action", "running"]);
  expect((await answer(one, mona.token)).status).toBe(200);
  expect(await statusOf(one)).toBe("running");
});

test("[C3] a browser that signed in by an admin's link approves nothing", async () => {
  const session = withCookie(await cookieBy(boss.token, mona.id));
  const path = `/v1/spaces/${spaceId}/tool-calls/${await ask()}/result`;
  const refused = await problemIn(await call(path, { ...session, body: { result: yes } }));
  expect(refused).toMatchObject({ code: "forbidden", detail: expect.stringContaining("made this session") });
});

test("[C3] an impersonated session approves nothing by socket either", async () => {
  const bearer = await tokenFor(mona.id, boss.token);
  const headers = { upgrade: "websocket" };
  const { webSocket } = await call(`/v1/spaces/${spaceId}/stream`, { bearer, headers });
  if (!webSocket) throw new Error("a socket was expected");
  const refused = Promise.withResolvers<unknown>();
  webSocket.addEventListener("message", ({ data }) => {
    const frame = z.looseObject({ type: z.string() }).parse(JSON.parse(String(data)));
    if (frame.type === "error") refused.resolve(frame);
  });
  webSocket.accept();
  const toolCallId = await ask();
  webSocket.send(JSON.stringify({ type: "tool.result", toolCallId, result: yes }));
  expect(await refused.promise).toMatchObject({ code: "forbidden", toolCallId });
  expect(await statusOf(toolCallId)).toBe("requires_action");
  webSocket.close();
});
