import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import type { AgentConfig } from "../../src/protocol/agent.ts";
import type { ShareOrigin } from "../../src/protocol/space.ts";
import type { ToolConfig } from "../../src/protocol/tool.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { call, step, text } from "../support/scripted-model.ts";
import { toolOf } from "../support/tool-of.ts";
import { ended, inboxOf, openHouse, passTime, rowsIn, scripted } from "./fixture.ts";

/**
 * Alice asks in her board, and because of it an agent speaks in General. Bob and another agent are in General but not
 * in the board. Every place where they could read is searched for the board's words and names.
 */
const secrets = { space: "Zanzibar board", sender: "Quetzalia", words: "the xylophone costs 9000" };
const kinds = ["timeline", "consciousness"] as const;

const stage = async (continuity: AgentConfig["continuity"], tools: ToolConfig[] = []) => {
  const house = await openHouse();
  const [alice, bob] = [await house.person(secrets.sender), await house.person("Bob")];
  const carrier = await house.agent({ name: "Carrier", continuity, tools });
  const reader = await house.agent({ name: "Reader", continuity });
  const board = await house.space(secrets.space, [alice, carrier]);
  const general = await house.space("General", [bob, carrier, reader]);
  const frames = await general.watch(bob);
  return { ...house, alice, bob, carrier, reader, board, general, frames };
};
type Stage = Awaited<ReturnType<typeof stage>>;

/** Plays the carrier by these steps; the other agent looks back and is silent. Answers what each was given. */
const played = (steps: ReturnType<typeof step>[], general: { id: string }) => {
  const given = { Carrier: [] as string[], Reader: [] as string[] };
  scripted(({ prompt }) => {
    const name = JSON.stringify(prompt[0]).includes('\\"Reader\\"') ? "Reader" : "Carrier";
    const told = JSON.stringify(prompt.filter(({ role }) => role !== "system"));
    given[name].push(told);
    if (name === "Carrier") return steps.shift() ?? step(text("Done."));
    const hasLooked = prompt.at(-1)?.role === "tool";
    return hasLooked ? step(text("Read.")) : step(call("read_messages", { spaceId: general.id }));
  });
  return given;
};

const carries = (spaceId: string) => [
  step(call("enter_space", { spaceId }), call("send_message", { text: "The budget is under review." })),
  step(text("Told them.")),
];

/** Everything that Bob and the other agent could read. */
const seenOutside = async ({ general, bob, reader, workspaceId, frames }: Stage, given: { Reader: string[] }) => {
  const as = general.as(bob);
  const messages = unwrap(await general.stub().list(as, { limit: 200 })).items;
  const receipts = await Promise.all(
    messages.map(async ({ id }) => unwrap(await general.stub().reads(as, id)).filter((one) => one.entityId !== bob.id)),
  );
  const stub = env.AGENT.getByName(reader.id);
  const search = { query: "xylophone budget", types: [], mode: "fts", limit: 50 } as const;
  const runs = unwrap(await stub.runs(workspaceId, { limit: 50 })).items;
  return JSON.stringify([
    ...[messages, receipts, unwrap(await general.stub().latest(as)), frames, given.Reader],
    ...[await inboxOf(workspaceId, reader), runs, unwrap(await stub.search(workspaceId, { ...search, types: [] }))],
    await Promise.all(runs.map(async ({ id }) => unwrap(await stub.run(workspaceId, id)))),
    unwrap(await stub.exportPage(workspaceId, null)).text,
    await rowsIn(reader, "SELECT * FROM journal"),
    await rowsIn(reader, "SELECT * FROM inbox"),
  ]);
};

const expectSecret = (seen: string): void => {
  for (const word of [secrets.space, secrets.sender, "xylophone"]) expect(seen).not.toContain(word);
};

test.for(kinds)("[C7] what a %s carries from a space tells others which message, and no word", async (continuity) => {
  const scene = await stage(continuity);
  const { alice, bob, board, general, carrier, reader, workspaceId } = scene;
  const given = played([...carries(general.id), step(call("read_messages", { spaceId: general.id }))], general);
  const asked = await board.post(alice, secrets.words);
  await ended(workspaceId, carrier, 1);
  await ended(workspaceId, reader, 1);
  const [said] = await general.messages();
  expect(said?.origin).toEqual({ spaceId: board.id, messageId: asked.id });
  expectSecret(await seenOutside(scene, given));
  expect(given.Reader.join()).toContain("[sent because of an event in another space]");

  // The agent itself knows why, by its journal.
  await general.post(bob, "@Carrier why?");
  await ended(workspaceId, carrier, 2);
  const own = `[sent because "${secrets.sender}" asked "${secrets.words}" in "${secrets.space}"]`;
  const toItself = given.Carrier.join();
  expect(toItself).toContain(JSON.stringify(`"sourceEvent":"${secrets.words}"`).slice(1, -1).replaceAll("\\", ""));
  expect(toItself.replaceAll("\\", "").includes(own)).toBe(continuity === "timeline");
  await ended(workspaceId, reader, 2);
  expectSecret(await seenOutside(scene, given));
});

test.for(kinds)("[C7] a card that a %s shows in another space tells none of its words", async (continuity) => {
  const tool = toolOf({ name: "lookUp", executionType: "internal", visible: true });
  const scene = await stage(continuity, [tool]);
  const { alice, board, general, carrier, workspaceId } = scene;
  const given = played([step(call("enter_space", { spaceId: general.id }), call("lookUp", {}))], general);
  const asked = await board.post(alice, secrets.words);
  await ended(workspaceId, carrier, 1);
  const [card] = await general.messages();
  expect(card).toMatchObject({ kind: "tool_call", origin: { spaceId: board.id, messageId: asked.id } });
  expectSecret(await seenOutside(scene, given));
});

test.for(kinds)("[C7] what a plan or a service has a %s say names neither it nor its words", async (continuity) => {
  const scene = await stage(continuity);
  const { general, carrier, workspaceId } = scene;
  const given = played([...carries(general.id), ...carries(general.id)], general);
  const agent = env.AGENT.getByName(carrier.id);
  unwrap(await agent.trigger(workspaceId, { serviceName: secrets.sender, payload: { issue: secrets.words } }));
  const [first] = await ended(workspaceId, carrier, 1);
  const plan = { name: secrets.space, instruction: secrets.words, runAfter: "1 hour" } as const;
  unwrap(await agent.putPlan(workspaceId, "daily", plan));
  await passTime(carrier, 60 * 60_000 + 1000);
  const [, second] = await ended(workspaceId, carrier, 2);
  const origins = (await general.messages()).map(({ origin }) => origin);
  expect(origins).toEqual([
    { sourceType: "service", sourceRunId: first?.id },
    { sourceType: "plan", sourceRunId: second?.id },
  ]);
  expectSecret(await seenOutside(scene, given));
});

const shared: [ShareOrigin, object | undefined][] = [
  ["name", { sourceSpaceName: secrets.space }],
  ["text", { sourceSpaceName: secrets.space, sourceSenderName: secrets.sender, sourceEvent: secrets.words }],
  ["none", undefined],
];

test.for(shared)("[C7] a space that chose shareOrigin %s tells that much", async ([shareOrigin, told]) => {
  const { alice, board, general, carrier, workspaceId } = await stage("timeline");
  const key = { kind: "key", workspaceId, keyId: "key" } as const;
  unwrap(await board.stub().update(key, { shareOrigin }));
  played(carries(general.id), general);
  const asked = await board.post(alice, secrets.words);
  await ended(workspaceId, carrier, 1);
  const [said] = await general.messages();
  expect(said?.origin).toEqual(told && { spaceId: board.id, messageId: asked.id, ...told });
});
