import { env } from "cloudflare:workers";
import { expect, test, vi } from "vitest";
import * as z from "zod";
import { Erasure } from "../../src/protocol/erasure.ts";
import { Message } from "../../src/protocol/message.ts";
import { SearchQuery } from "../../src/protocol/search.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { adminKey, type Call, call, expectOk, type House, ids, openHouse } from "../support/house.ts";
import { question } from "../support/question.ts";
import { rowsWith } from "../support/rows.ts";
import { problemIn } from "./operations.ts";

const One = z.object({ erasure: Erasure });
const List = z.object({ items: z.array(Erasure), nextCursor: z.string().nullable() });
const Messages = z.object({ items: z.array(Message) });

const erase = (by: Call, kind: string, id: string): Promise<Response> =>
  call("/v1/erasures", { ...by, body: { kind, id } });

const done = ({ secretKey }: House, id: string) =>
  vi.waitFor(
    async () => {
      const { erasure } = await expectOk(One, call(`/v1/erasures/${id}`, { bearer: secretKey }));
      expect(erasure.state).toBe("done");
      return erasure;
    },
    { timeout: 8000 },
  );

test("[L16] an admin erases a person: their token ends, their words, answers and name are gone", async () => {
  const house = await openHouse();
  const [mona, boss] = [await house.person("Mona"), await house.person("Boss", "admin")];
  const agent = await house.agent({ name: "Analyst" });
  const { id: spaceId } = await house.space("Lab", [mona, boss, agent]);
  const toolCallId = await question(house.workspaceId, spaceId, agent.id);
  const answered = `/v1/spaces/${spaceId}/tool-calls/${toolCallId}/result`;
  expect((await call(answered, { bearer: mona.token, body: { result: { color: "quince yellow" } } })).status).toBe(200);
  await house.say(spaceId, mona, "I like the medlars", { clientKey: "medlars" });
  const begun = await erase({ bearer: boss.token }, "person", mona.id);
  expect(begun.status).toBe(202);
  expect((await call("/v1/entities", { bearer: mona.token })).status).toBe(401);
  const report = await done(house, mona.id);
  expect(report).toMatchObject({ id: mona.id, kind: "person", left: 0 });
  const messages = await expectOk(Messages, call(`/v1/spaces/${spaceId}/messages`, { bearer: house.secretKey }));
  for (const word of ["quince", "medlars", "Mona"]) expect(JSON.stringify(messages)).not.toContain(word);
  expect(messages.items.map(({ toolCall }) => toolCall?.awaits?.answers[0]?.name)).toContain("[erased]");
  const listed = await expectOk(List, call("/v1/erasures?limit=1", { bearer: house.secretKey }));
  expect(listed).toEqual({ items: [report], nextCursor: null });
  const log = z.object({ items: z.array(z.object({ action: z.string(), actor: z.object({ id: z.string() }) })) });
  const noted = await expectOk(log, call(`/v1/workspace/audit?target=${mona.id}`, { bearer: house.secretKey }));
  expect(noted.items.map(({ action, actor }) => [action, actor.id])).toEqual(
    expect.arrayContaining([
      ["erasure.done", "workspace"],
      ["erasure.began", boss.id],
    ]),
  );
});

test.for([
  [{ of: "red" }, '{"of":"red"}'],
  [{ of: 48151623 }, "48151623"],
  [true, '"output":true'],
])("[L16] no event of a space tells what who is erased answered: %j", async ([result, told]) => {
  const house = await openHouse();
  const [mona, agent] = [await house.person("Mona"), await house.agent({ name: "Analyst" })];
  const { id: spaceId } = await house.space("Lab", [mona, agent]);
  const toolCallId = await question(house.workspaceId, spaceId, agent.id);
  const answered = `/v1/spaces/${spaceId}/tool-calls/${toolCallId}/result`;
  expect((await call(answered, { bearer: mona.token, body: { result } })).status).toBe(200);
  expect(await rowsWith(env.SPACE.getByName(spaceId), String(told))).not.toEqual([]);
  await erase({ bearer: house.secretKey }, "person", mona.id);
  await done(house, mona.id);
  expect(await rowsWith(env.SPACE.getByName(spaceId), String(told))).toEqual([]);
});

test("[L16] a workspace is erased by its own key alone, and its operator reads the report", async () => {
  const house = await openHouse("Quincery");
  const boss = await house.person("Boss", "admin");
  await house.space("Lab", [boss]);
  const { workspaceId, secretKey: bearer } = house;
  expect(await problemIn(await erase({ bearer: boss.token }, "workspace", workspaceId))).toMatchObject({
    code: "forbidden",
  });
  expect((await erase({ bearer }, "workspace", workspaceId)).status).toBe(202);
  const overview = z.object({ workspace: z.object({ name: z.string(), deletedAt: z.string(), erasure: Erasure }) });
  const path = `/v1/operator/workspaces/${workspaceId}`;
  await vi.waitFor(async () => {
    const { workspace } = await expectOk(overview, call(path, { bearer: adminKey }));
    expect(workspace).toMatchObject({ name: "[erased]", erasure: { state: "done", left: 0 } });
  });
  await vi.waitFor(async () => expect((await call("/v1/workspace", { bearer })).status).toBe(401));
});

test("[L16] what is being imported is refused, and so is a body that names nothing", async () => {
  const house = await openHouse();
  const { workspaceId, secretKey: bearer } = house;
  const agentId = ids.mint("ent");
  unwrap(await env.AGENT.getByName(agentId).beginImport(agentId, { workspaceId, token: "one" }));
  const refused = await problemIn(await erase({ bearer }, "agent", agentId));
  expect(refused).toMatchObject({ code: "conflict", detail: expect.stringContaining("imported") });
  expect(await problemIn(await erase({ bearer }, "agent", ids.mint("ent")))).toMatchObject({ code: "not_found" });
  expect(await problemIn(await erase({ bearer }, "planet", agentId))).toMatchObject({ code: "invalid_request" });
  expect(await problemIn(await erase({ bearer }, "space", "spc_x"))).toMatchObject({ code: "invalid_request" });
});

test("[L16] a deleted agent that is erased leaves readers no copies of its blocks", async () => {
  const house = await openHouse();
  const { secretKey: bearer, workspaceId } = house;
  const [writer, { id }] = [await house.agent({ name: "Quillfeather" }), await house.agent({ name: "Reader" })];
  const blocks = `/v1/agents/${writer.id}/blocks`;
  await call(blocks, { bearer, body: { label: "garden", type: "core", content: "The medlars ripen late" } });
  await call(`${blocks}/garden/shares/${id}`, { bearer, method: "PUT", body: {} });
  unwrap(await env.AGENT.getByName(id).search(workspaceId, SearchQuery.parse({ query: "medlars", mode: "fts" })));
  expect(await rowsWith(env.AGENT.getByName(id), "medlars")).not.toEqual([]);
  await call(`/v1/agents/${writer.id}`, { bearer, method: "DELETE" });
  await erase({ bearer }, "agent", writer.id);
  expect((await done(house, writer.id)).unknown[1]).toContain("deleted before");
  for (const word of ["medlars", "Quillfeather"]) expect(await rowsWith(env.AGENT.getByName(id), word)).toEqual([]);
});
