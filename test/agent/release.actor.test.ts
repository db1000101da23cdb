import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { Agent } from "../../src/agent/agent.ts";
import type { Message } from "../../src/protocol/message.ts";
import type { Release } from "../../src/protocol/space.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { armFault } from "../../src/shared/fault.ts";
import { compartmentId } from "../../src/shared/ids.ts";
import { asShown } from "../support/as-shown.ts";
import { rowsWith } from "../support/rows.ts";
import { call, step, text } from "../support/scripted-model.ts";
import { agentStub, ended, ids, openScene, passTime, runsOf, scripted, told, undoLater, userTexts } from "./fixture.ts";

/** An agent says in an open space, Alpha, what it knows from a confidential one, Board, if people of Board agree. */
undoLater();

const open = async (continuity: "consciousness" | "timeline", release: Release | undefined, wait = false) => {
  const said = { text: "We merge on Friday", ...(wait && { wait }) };
  const model = scripted([step(text("Hello."))]);
  const scene = await openScene({ continuity, messaging: wait ? "threaded" : "simple" });
  const { house, analyst, husam, space: alpha } = scene;
  const sara = await house.person("Sara");
  const board = await house.space("Board", [husam, sara, analyst], true);
  const asKey = { kind: "key", workspaceId: house.workspaceId, keyId: "key" } as const;
  if (release) unwrap(await board.stub().update(asKey, { release }));
  const mind = { ...analyst, id: compartmentId(ids, analyst.id, board.id) };
  await board.post(husam, "Hello");
  await ended(house.workspaceId, mind, 1);
  model.push(
    step(call("enter_space", { spaceId: alpha.id })),
    step(call("send_message", said)),
    ...Array.from({ length: continuity === "consciousness" ? 2 : 1 }, () => step(text("Well."))),
  );
  /** The card in Board, once it is as wanted. */
  const card = (status: string): Promise<Message> =>
    vi.waitFor(async () => {
      const message = (await board.messages()).find(({ toolCall }) => toolCall);
      expect(message?.toolCall?.status).toBe(status);
      return message as Message;
    });
  const answer = (by: typeof husam, { toolCall }: Message, approved: boolean) =>
    board.stub().answerToolCall(board.as(by), toolCall?.id ?? "", asShown(toolCall ?? {}, { result: { approved } }));
  return { ...scene, alpha, board, mind, model, sara, asKey, card, answer };
};

/** The results that the model read last. */
const spaceStub = (id: string) => env.SPACE.getByName(id) as unknown as DurableObjectStub;
/** All that a space stores. */
const rowsInSpace = (id: string) =>
  runInDurableObject(spaceStub(id), (_, { storage }) => storage.sql.exec("SELECT * FROM log").toArray());

const lastRead = (model: { calls: readonly { prompt: unknown }[] }): string =>
  JSON.stringify(model.calls.at(-1)?.prompt);

describe.each(["consciousness", "timeline"] as const)("a %s", (continuity) => {
  test("[C20] says elsewhere exactly what people of the confidential space let out", async () => {
    const { alpha, board, husam, analyst, mind, model, card, answer } = await open(continuity, { quorum: 1 });
    const told = await board.post(husam, "Tell them");
    const asked = await card("requires_action");
    expect(asked.toolCall?.awaits?.shown?.map(({ path, text }) => [path, text])).toEqual([
      ["tool", "send_message"],
      ["target", `a message in "Alpha" (${alpha.id})`],
      ["readers", "1 person and 1 agent now. The space is open: its agents know it everywhere."],
      ["input.text", "We merge on Friday"],
    ]);
    const release = { spaceId: alpha.id, name: "Alpha", readers: "1 person and 1 agent", confidential: false };
    expect(asked.toolCall?.release).toEqual(release);
    expect(await alpha.texts()).toEqual([]);
    unwrap(await answer(husam, asked, true));
    await expect.poll(() => alpha.texts()).toEqual(["Analyst: We merge on Friday"]);
    // Its runs there read to whom the words went.
    await expect.poll(() => lastRead(model)).toMatch(/"release":\{"spaceId":"spc_\w+","name":"Alpha"/);
    const [said] = await alpha.messages();
    expect(said).toMatchObject({ sender: { id: analyst.id }, text: "We merge on Friday" });
    for (const told of ["origin", "reads", "runId"]) expect(said).not.toHaveProperty(told);
    // The chain that it begins names neither the run nor the message that it came of.
    const held = JSON.stringify(await rowsInSpace(alpha.id));
    for (const inside of [told.id, mind.id, board.id]) expect(held).not.toContain(inside);
  });

  test("[C20] [C11] charges the chain of what was let out to the id of the person who let it", async () => {
    const { alpha, board, husam, card, answer } = await open(continuity, { quorum: 1 });
    await board.post(husam, "Tell them");
    unwrap(await answer(husam, await card("requires_action"), true));
    await expect.poll(() => alpha.texts()).toHaveLength(1);
    const rows = (await rowsInSpace(alpha.id)).map((row) => JSON.stringify(row));
    const said = rows.find((row) => row.includes("We merge on Friday"));
    expect(said).toContain(`\\"by\\":\\"${husam.id}\\"`);
  });

  test("[C20] says nothing elsewhere where one of them rejects it", async () => {
    const { alpha, board, husam, sara, card, answer } = await open(continuity, { quorum: 2 });
    await board.post(husam, "Tell them");
    const asked = await card("requires_action");
    unwrap(await answer(husam, asked, true));
    unwrap(await answer(sara, asked, false));
    await card("error");
    expect(await alpha.texts()).toEqual([]);
  });

  test.for<[string, Release | null | "Sara's", string]>([
    ["withdrawn", null, "lets no words out any more"],
    ["made to need more people", { quorum: 2 }, "2 must agree, and 1 of those who agreed still may"],
    ["given to others", "Sara's", "1 must agree, and 0 of those who agreed still may"],
  ])("[C20] says nothing where the release was %s before people agreed", async ([, changed, why]) => {
    const { house, alpha, board, husam, sara, asKey, mind, model, card, answer } = await open(continuity, {
      quorum: 1,
    });
    await board.post(husam, "Tell them");
    const asked = await card("requires_action");
    const release = changed === "Sara's" ? { approvers: [sara.id], quorum: 1 } : changed;
    unwrap(await board.stub().update(asKey, { release }));
    unwrap(await answer(husam, asked, true));
    await card("error");
    expect(await alpha.texts()).toEqual([]);
    await ended(house.workspaceId, mind, continuity === "timeline" ? 2 : 3);
    expect(lastRead(model)).toContain(why);
  });

  test("[C20] says nothing in a space that became confidential after people were shown it as open", async () => {
    const { house, alpha, board, husam, asKey, mind, model, card, answer } = await open(continuity, { quorum: 1 });
    await board.post(husam, "Tell them");
    const asked = await card("requires_action");
    unwrap(await alpha.stub().update(asKey, { confidential: true }));
    unwrap(await answer(husam, asked, true));
    expect((await card("error")).toolCall?.error?.code).toBe("approval_changed");
    expect(await alpha.texts()).toEqual([]);
    await ended(house.workspaceId, mind, continuity === "timeline" ? 2 : 3);
    expect(lastRead(model)).toContain("has become confidential since people were asked");
  });

  test.each([
    ["more", "went from 1 person and 1 agent to 2 people and 1 agent since people were asked"],
    ["as many others", "since people were asked: ask them again"],
  ])("[C20] says nothing where %s read it than people were shown", async (who, why) => {
    const { house, alpha, board, husam, asKey, mind, model, card, answer } = await open(continuity, { quorum: 1 });
    await board.post(husam, "Tell them");
    const asked = await card("requires_action");
    if (who !== "more") unwrap(await alpha.stub().removeMember(asKey, husam.id));
    unwrap(await alpha.stub().addMember(asKey, await house.person("Eve")));
    unwrap(await answer(husam, asked, true));
    expect((await card("error")).toolCall?.error?.code).toBe("approval_changed");
    expect(await alpha.texts()).toEqual([]);
    await ended(house.workspaceId, mind, continuity === "timeline" ? 2 : 3);
    expect(lastRead(model)).toContain(why);
  });

  test("[C20] asks nobody where too few of its approvers are left, and says so", async () => {
    const { house, alpha, board, husam, sara, asKey, model, mind, card } = await open(continuity, undefined);
    unwrap(await board.stub().update(asKey, { release: { approvers: [sara.id], quorum: 1 } }));
    unwrap(await board.stub().removeMember(asKey, sara.id));
    await board.post(husam, "Tell them");
    await ended(house.workspaceId, mind, 2);
    expect(lastRead(model)).toContain("whoever runs that space names others");
    expect(await alpha.texts()).toEqual([]);
    expect((await card("error")).toolCall?.error?.message).toContain("whoever runs that space names others");
  });

  test("[C20] does not wait for answers to what is let out", async () => {
    const { house, alpha, board, husam, model, mind } = await open(continuity, { quorum: 1 }, true);
    await board.post(husam, "Ask them");
    await ended(house.workspaceId, mind, 2);
    expect(lastRead(model)).toContain("you do not hear answers to what is let out");
    expect(await alpha.texts()).toEqual([]);
  });

  test("[C20] [C21] knows what was let out in all its open spaces, as its words, told once", async () => {
    const { house, agent, alpha, board, husam, analyst, mind, card, answer, model } = await open(continuity, {
      quorum: 1,
    });
    const beta = await house.space("Beta", [husam, analyst]);
    const heard = await board.post(husam, "Tell them");
    unwrap(await answer(husam, await card("requires_action"), true));
    await expect.poll(() => alpha.texts()).toHaveLength(1);
    await ended(house.workspaceId, mind, continuity === "timeline" ? 2 : 3);
    await told(alpha.id);
    await evictDurableObject(agentStub(analyst));
    const [said] = await alpha.messages();
    const known = async () => unwrap(await agent.knows(house.workspaceId, { messageId: said?.id ?? "" })).places;
    expect(await known()).toContainEqual(expect.objectContaining({ how: "verbatim" }));
    const runs = (await runsOf(house.workspaceId, analyst)).length;
    for (const [count, space] of [beta, beta, alpha].entries()) {
      model.push(step(text("Read.")));
      await space.post(husam, `Question ${count}`);
      await ended(house.workspaceId, analyst, runs + count + 1);
      const input = lastRead(model);
      expect(input.split("We merge on Friday")).toHaveLength(2);
      expect(input).toContain("[your own words, let out by the people of a confidential space]");
      for (const inside of [heard.id, mind.id, "Tell them"]) expect(input).not.toContain(inside);
      expect(await known()).toContainEqual(expect.objectContaining({ how: "verbatim" }));
    }
    expect(runs).toBe(0);
  });

  test.each([
    ["an open", "it is"],
    ["an open", "its space is"],
    ["a confidential", "it is"],
    ["a confidential", "its space is"],
  ])("[L4] [L13] forgets where it said what went into %s space long after, as %s deleted", async (where, what) => {
    const { house, alpha, board, husam, asKey, mind, card, answer } = await open(continuity, { quorum: 1 });
    if (where !== "an open") unwrap(await alpha.stub().update(asKey, { confidential: true }));
    await told(alpha.id);
    await board.post(husam, "Tell them");
    const asked = await card("requires_action");
    await passTime(mind, 3_600_000);
    unwrap(await answer(husam, asked, true));
    await card("complete");
    await ended(house.workspaceId, mind, continuity === "timeline" ? 2 : 3);
    const [said] = await alpha.messages();
    expect(await rowsWith(agentStub(mind), "merge on Friday")).not.toEqual([]);
    const stub = alpha.stub();
    const removed = what === "it is" ? stub.deleteMessage(asKey, said?.id ?? "") : stub.remove(asKey);
    expect(await removed).toMatchObject({ ok: true });
    await vi.waitFor(async () => expect(await rowsWith(agentStub(mind), "merge on Friday")).toEqual([]));
  });

  test("[R3] [C20] says that nobody knows what came of it, cut as it said it and refused after", async () => {
    const { alpha, board, husam, asKey, mind, card, answer } = await open(continuity, { quorum: 1 });
    await board.post(husam, "Tell them");
    const crashed = armFault("call.after-perform");
    unwrap(await answer(husam, await card("requires_action"), true));
    await crashed;
    await expect.poll(() => alpha.texts()).toHaveLength(1);
    unwrap(await board.stub().update(asKey, { release: null }));
    await told(board.id);
    await passTime(mind, 30_000);
    expect((await card("error")).toolCall?.error?.code).toBe("outcome_unknown");
  });

  test("[C20] shows what was let out to the agent's own open runs as its words", async () => {
    const { alpha, board, husam, card, answer, ask, model } = await open(continuity, { quorum: 1 });
    await board.post(husam, "Tell them");
    unwrap(await answer(husam, await card("requires_action"), true));
    await expect.poll(() => alpha.texts()).toHaveLength(1);
    model.push(step(call("enter_space", { spaceId: alpha.id })), step(text("Yes.")));
    await ask("Did you say that?");
    expect(userTexts(model.calls.at(-1)).join() + lastRead(model)).toContain("We merge on Friday");
  });
});

test("[L13] [B3] the deletion of much that was let out is told in parts that a row holds", async () => {
  const { house, alpha, analyst, asKey, mind } = await open("timeline", { quorum: 1 });
  unwrap(await alpha.stub().update(asKey, { confidential: true }));
  const text = "merge ".repeat(5000);
  for (let count = 0; count < 80; count += 1) {
    const messageId = ids.deriveOwned("msg", alpha.id, count);
    const said = { workspaceId: house.workspaceId, agentId: analyst.id, runId: "", messageId, text };
    const root = { id: messageId, kind: "person" } as const;
    const own = { until: Date.now() + 60_000, letOut: true, letOutBy: mind.id } as const;
    unwrap(await alpha.stub().append({ ...said, root, ...own }));
  }
  const forgetting = vi.spyOn(Agent.prototype, "forgetMessages");
  onTestFinished(() => forgetting.mockRestore());
  unwrap(await alpha.stub().remove(asKey));
  const told = () => forgetting.mock.calls.map(([, changes]) => changes);
  const forgotten = () => new Set(told().flatMap((changes) => changes.map(({ message }) => message.id)));
  await vi.waitFor(() => expect(forgotten().size).toBe(80));
  expect(Math.max(...told().map((changes) => JSON.stringify(changes).length))).toBeLessThan(2_000_000);
});
