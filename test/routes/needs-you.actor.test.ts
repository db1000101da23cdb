import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import * as z from "zod";
import { Message } from "../../src/protocol/message.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { maxSearchedMessages } from "../../src/space/bounds.ts";
import { call, expectOk, type House, ids, openHouse, type Participant } from "../support/house.ts";
import { openLine } from "../support/line-listener.ts";
import { question } from "../support/question.ts";
import { problemIn } from "./operations.ts";

/** What a person finds without knowing where it is: calls that wait for them, and messages by their words. */
let house: House;
let mona: Participant;
let omar: Participant;
let agentId = "";
beforeAll(async () => {
  house = await openHouse();
  [mona, omar] = [await house.person("Mona"), await house.person("Omar")];
  agentId = (await house.agent({ name: "Robo" })).id;
});

const Page = z.object({ items: z.array(Message), nextCursor: z.string().nullable() });
const pageOf = ({ token }: Pick<Participant, "token">, path: string) => expectOk(Page, call(path, { bearer: token }));
const idsOf = (page: z.infer<typeof Page>): (string | undefined)[] => page.items.map(({ toolCall }) => toolCall?.id);

test("[M5] needs-you tells each call in their spaces that a person may answer and has not", async () => {
  const spaces = [
    await house.space("One", [mona, omar, { id: agentId }]),
    await house.space("Two", [mona, { id: agentId }]),
  ];
  const board = await house.space("Board", [omar, { id: agentId }]);
  const ask = (spaceId: string, kind: "answer" | "approval" = "answer", quorum = 1) =>
    question(house.workspaceId, spaceId, agentId, kind, undefined, quorum);
  const asked = await Promise.all(spaces.map(({ id }) => ask(id, "approval", 2)));
  const open = [...asked, await ask(spaces[0]?.id ?? "")];
  await ask(board.id);
  expect(idsOf(await pageOf(mona, "/v1/needs-you")).toSorted()).toEqual(open.toSorted());
  const pages = [await pageOf(mona, "/v1/needs-you?limit=1")];
  pages.push(await pageOf(mona, `/v1/needs-you?limit=1&cursor=${pages[0]?.nextCursor}`));
  expect(pages.flatMap(idsOf).toSorted()).toEqual(open.toSorted());
  expect(idsOf(await pageOf(mona, `/v1/needs-you?spaceId=${spaces[1]?.id}`))).toEqual([asked[1]]);
  const [{ toolCall } = {}] = (await pageOf(mona, `/v1/needs-you?spaceId=${spaces[0]?.id}`)).items;
  const result = { approved: true, inputHash: toolCall?.awaits?.inputHash };
  const path = `/v1/spaces/${spaces[0]?.id}/tool-calls/${toolCall?.id}/result`;
  expect((await call(path, { bearer: mona.token, body: { result } })).status).toBe(200);
  expect(idsOf(await pageOf(mona, `/v1/needs-you?spaceId=${spaces[0]?.id}`))).toEqual([open[2]]);
  expect(idsOf(await pageOf(omar, `/v1/needs-you?spaceId=${spaces[0]?.id}`))).toContain(toolCall?.id);
});

test("[I1] [M5] needs-you tells mentions, replies and agents that wait, as a line does", async () => {
  const [ann, ben] = [await house.person("Ann"), await house.person("Ben")];
  const hall = await house.space("Hall", [ann, ben, { id: agentId }]);
  const own = await house.say(hall.id, ann, "Who comes?");
  const mention = await house.say(hall.id, ben, "@Ann I do");
  await house.say(hall.id, ben, "Nobody in particular");
  const replied = { bearer: ben.token, body: { text: "And Cat", replyTo: own.id } };
  const { message: reply } = await expectOk(
    z.object({ message: Message }),
    call(`/v1/spaces/${hall.id}/messages`, replied),
  );
  const waits = ids.deriveOwned("msg", hall.id, "waits");
  unwrap(
    await env.SPACE.getByName(hall.id).append({
      ...{ workspaceId: house.workspaceId, agentId, runId: ids.mintOwned("run", agentId), messageId: waits },
      ...{ root: { id: waits, kind: "agent" }, text: "@Ann which day?", awaits: [ann.id], expectsReply: true },
    }),
  );
  const waiting = async () => (await pageOf(ann, `/v1/needs-you?spaceId=${hall.id}`)).items.map(({ id }) => id);
  expect(await waiting()).toEqual([mention.id, reply.id, waits]);
  const { welcome } = await openLine(ann.token);
  expect(welcome.needsYou.map(({ kind, messageId }) => [kind, messageId])).toEqual([
    ["mention", mention.id],
    ["reply", reply.id],
    ["wait", waits],
  ]);
  await call(`/v1/spaces/${hall.id}/read`, { bearer: ann.token, body: { messageId: waits } });
  expect(await waiting()).toEqual([waits]);
  await house.say(hall.id, ann, "Friday");
  expect(await waiting()).toEqual([]);
  expect((await pageOf(ben, `/v1/needs-you?spaceId=${hall.id}`)).items).toEqual([]);
});

test("[M5] [C19] needs-you tells nobody of a space that they do not read, and a service nothing", async () => {
  const board = await house.space("Board", [omar, { id: agentId }], { confidential: true });
  const boss = await house.person("Boss", "admin");
  const other = (await (await openHouse()).person("Other")).token;
  const refused = async (bearer: string) =>
    (await problemIn(await call(`/v1/needs-you?spaceId=${board.id}`, { bearer }))).code;
  expect(await refused(boss.token)).toBe("forbidden");
  for (const bearer of [mona.token, other]) expect(await refused(bearer)).toBe("not_found");
  const jira = await house.service("Jira");
  const desk = await house.space("Desk", [jira, { id: agentId }]);
  await question(house.workspaceId, desk.id, agentId);
  expect(idsOf(await pageOf(jira, "/v1/needs-you"))).toEqual([]);
});

test("[M5] a search finds each message that holds the words as it stands now, page by page", async () => {
  const { id } = await house.space("Kitchen", [mona, omar]);
  const path = `/v1/spaces/${id}/messages`;
  const said = [];
  for (const text of ["Quince jam", "Plum jam", "QUINCE and\njam", "quince", "Quince jam again"]) {
    said.push(await house.say(id, mona, text));
  }
  const last = `${path}/${said[4]?.id}`;
  expect((await call(last, { method: "PATCH", bearer: mona.token, body: { text: "Pear" } })).status).toBe(200);
  const found = await pageOf(omar, `${path}?q=jam%20quince`);
  expect(found).toMatchObject({ items: [{ text: "Quince jam" }, { text: "QUINCE and\njam" }], nextCursor: null });
  const newest = await pageOf(omar, `${path}?q=JAM+quin&limit=1`);
  expect(newest).toMatchObject({ items: [{ id: said[2]?.id }], nextCursor: String(said[2]?.seq) });
  const older = await pageOf(omar, `${path}?q=JAM+quin&limit=1&before=${newest.nextCursor}`);
  expect(older).toMatchObject({ items: [{ id: said[0]?.id }], nextCursor: null });
  expect((await problemIn(await call(`${path}?q=x&after=1`, { bearer: omar.token }))).code).toBe("invalid_request");
  expect(maxSearchedMessages).toBe(1000);
});
