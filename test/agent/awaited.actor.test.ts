import { expect, test, vi } from "vitest";
import { unwrap } from "../../src/shared/errors.ts";
import { call, type ScriptedStep, step, text } from "../support/scripted-model.ts";
import { ended, openHouse, runsOf, scripted } from "./fixture.ts";

/** Whom a message that says `wait: true` waits for. */
const continuities = ["timeline", "consciousness"] as const;
type Continuity = (typeof continuities)[number];

const stage = async (continuity: Continuity, names = ["Husam", "Designer", "Ahmad"]) => {
  const house = await openHouse();
  const people = await Promise.all(names.map((name) => house.person(name)));
  const [husam] = people;
  if (!husam) throw new Error("nobody");
  const analyst = await house.agent({ name: "Analyst", continuity, messaging: "threaded" });
  const space = await house.space("Alpha", [...people, analyst]);
  const enter = call("enter_space", { spaceId: space.id });
  /** The agent enters the space and does this in a step of its own each; answers the outputs of these calls. */
  const outputs = async (asked: string, steps: (messageId: string) => ScriptedStep[]): Promise<unknown[]> => {
    scripted(async (_, index) => {
      const first = (await space.messages())[0]?.id ?? "";
      return [step(enter), ...steps(first), step(text("Done."))][index] ?? step(text("Done."));
    });
    await space.post(husam, asked);
    const run = await vi.waitFor(async () => {
      const [newest] = await runsOf(house.workspaceId, analyst);
      expect(newest?.status).not.toBe("running");
      return newest;
    });
    return run?.steps.flatMap(({ toolCalls }) => toolCalls.map(({ output }) => output)).slice(1) ?? [];
  };
  return { house, people, husam, analyst, space, outputs };
};

test.each(continuities)("[K9] a wait in a space of two waits for the other member (%s)", async (continuity) => {
  const { outputs, space } = await stage(continuity, ["Husam"]);
  const [asked] = await outputs("The numbers", () => [
    step(call("send_message", { text: "Which quarter?", wait: true })),
  ]);
  expect(asked).toMatchObject({ success: true, waitingFor: ["Husam"] });
  expect((await space.messages()).at(-1)).toMatchObject({ text: "Which quarter?", expectsReply: true });
});

test.each(continuities)("[K9] a reply that mentions nobody waits for whom it answers (%s)", async (continuity) => {
  const { outputs, space } = await stage(continuity);
  const [asked] = await outputs("@Ahmad and you: the numbers", (messageId) => [
    step(call("send_reply", { replyToMessageId: messageId, text: "Which quarter?", wait: true })),
  ]);
  expect(asked).toMatchObject({ success: true, waitingFor: ["Husam"] });
  const [trigger, reply] = await space.messages();
  expect(reply).toMatchObject({ text: "Which quarter?", replyTo: trigger?.id });
});

test.each(continuities)("[K9] whom a message mentions is waited for, not whom it answers (%s)", async (continuity) => {
  const { outputs } = await stage(continuity);
  const [asked] = await outputs("Ask the others", (messageId) => [
    step(call("send_reply", { replyToMessageId: messageId, text: "@Designer @Ahmad agreed?", wait: true })),
  ]);
  expect(asked).toMatchObject({ waitingFor: ["Designer", "Ahmad"] });
});

test.each(continuities)("[K9] a reply to the agent's own words waits for the other of two (%s)", async (continuity) => {
  const { outputs, space } = await stage(continuity, ["Husam"]);
  await outputs("The numbers", () => [step(call("send_message", { text: "Which quarter?" }))]);
  const own = (await space.messages()).at(-1)?.id ?? "";
  const [asked] = await outputs("Well?", () => [
    step(call("send_reply", { replyToMessageId: own, text: "I asked this", wait: true })),
  ]);
  expect(asked).toMatchObject({ waitingFor: ["Husam"] });
});

test.each(continuities)(
  "[K9] [S4] a wait for nobody is refused with a reason, and the run goes on (%s)",
  async (continuity) => {
    const { house, outputs, husam, space, people } = await stage(continuity);
    const alone = await house.space("Elsewhere", [husam]);
    const foreign = await alone.post(husam, "A secret");
    const gone = await space.post(people[2] ?? husam, "I am off");
    unwrap(
      await space.stub().removeMember({ kind: "key", workspaceId: house.workspaceId, keyId: "key" }, gone.sender.id),
    );
    const refused = await outputs("Ask", (firstId) => [
      step(call("send_message", { text: "Anybody?", wait: true })),
      step(call("send_message", { text: "@Analyst?", wait: true })),
      step(call("send_reply", { replyToMessageId: foreign.id, text: "Yes?", wait: true })),
      step(call("send_reply", { replyToMessageId: firstId, text: "Are you?", wait: true })),
      step(call("send_reply", { replyToMessageId: foreign.id, text: "To you" })),
    ]);
    const reasons = refused.map((each) => JSON.stringify(each));
    expect(reasons[0]).toMatch(/tool_input_invalid.*wait: the text mentions no other member.*as @Name/);
    expect(reasons[1]).toMatch(/tool_input_invalid.*wait: you would wait for yourself/);
    expect(reasons[2]).toMatch(/unknown_reference.*replyToMessageId/);
    expect(reasons[2]).not.toContain(foreign.id);
    expect(reasons[3]).toMatch(/wait: who wrote that message has left the space/);
    expect(reasons[4]).toMatch(/unknown_reference/);
    expect((await space.texts()).filter((words) => words.startsWith("Analyst"))).toEqual([]);
  },
);

test.each(continuities)("[K9] alone in a space the agent can wait for nobody (%s)", async (continuity) => {
  const { house, outputs, analyst } = await stage(continuity, ["Husam"]);
  const den = await house.space("Den", [analyst]);
  const [, refused] = await outputs("Ask", () => [
    step(call("enter_space", { spaceId: den.id })),
    step(call("send_message", { text: "Anybody?", wait: true })),
  ]);
  expect(JSON.stringify(refused)).toContain("wait: nobody else is in the active space");
});

test("[K9] who is awaited is addressed, so that an agent whose message is answered wakes", async () => {
  const { house, husam, analyst, space } = await stage("timeline");
  const scribe = await house.agent({ name: "Scribe", continuity: "timeline" });
  unwrap(await space.stub().addMember(house.key, scribe));
  unwrap(await space.stub().update(house.key, { wakePolicy: "addressed" }));
  scripted(async (_, index) => {
    if (index === 0) return step(call("send_message", { text: "I wrote it." }));
    if (index === 1) return step(text("Said."));
    const written = (await space.messages()).find(({ text: words }) => words === "I wrote it.")?.id ?? "";
    if (index === 2) return step(call("send_reply", { replyToMessageId: written, text: "Where?", wait: true }));
    return step(text("Read."));
  });
  await space.post(husam, "@Scribe did you?");
  await ended(house.workspaceId, scribe, 1);
  await space.post(husam, "@Analyst ask");
  const [, woken] = await ended(house.workspaceId, scribe, 2);
  expect(woken?.trigger.text).toBe("Where?");
  expect((await space.messages()).at(-1)?.mentions).toBeUndefined();
  expect((await runsOf(house.workspaceId, analyst))[0]?.status).toBe("waiting_reply");
});
