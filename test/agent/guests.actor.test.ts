import { env } from "cloudflare:workers";
import { expect, test, vi } from "vitest";
import type { ClaimedRun, GuestCallAnswer } from "../../src/protocol/guest.ts";
import { type Outcome, unwrap } from "../../src/shared/errors.ts";
import { armFault } from "../../src/shared/fault.ts";
import { type AgentSettings, inboxOf, openScene, passTime, runsOf, undoLater } from "./fixture.ts";

/** A guest: the same inbox, runs, tools and journal as a house agent, and a program from outside that thinks. */
undoLater();

const codeOf = (outcome: Outcome<unknown>): string => (outcome.ok ? "ok" : outcome.problem.code);

const openGuest = async (settings: Partial<AgentSettings> = {}) => {
  const scene = await openScene({ runtime: "guest", continuity: "timeline", ...settings });
  const { workspaceId } = scene.house;
  const stub = () => env.AGENT.getByName(scene.analyst.id);
  const claim = async (waitSeconds = 5): Promise<ClaimedRun> => {
    const claimed = unwrap(await stub().claimRun(workspaceId, { waitSeconds }));
    if (!claimed) throw new Error("no run came");
    return claimed;
  };
  /** What a program with this claim does. */
  const acting = ({ run, lease }: ClaimedRun) => ({
    call: (name: string, input: object, key: string): Promise<Outcome<GuestCallAnswer>> =>
      stub().callInRun(workspaceId, run.id, { name, input: input as never, key, lease }),
    say: (text: string, key = text) =>
      stub().callInRun(workspaceId, run.id, { name: "send_message", input: { text }, key, lease }),
    speak: (lines: string[], key: string) =>
      stub().speakInRun(workspaceId, run.id, { key, lease }, new Blob([lines.join("\n")]).stream()),
    complete: (summary = "", usage?: { inputTokens: number; outputTokens: number }) =>
      stub().endRun(workspaceId, run.id, { kind: "complete", summary, usage, lease }),
    skip: (reason: string) => stub().endRun(workspaceId, run.id, { kind: "skip", reason, lease }),
    fail: (error: string) => stub().endRun(workspaceId, run.id, { kind: "fail", error, lease }),
  });
  return { ...scene, workspaceId, stub, claim, acting, lines: () => scene.space.texts() };
};

test("[G1] a claim has the events, an input and tools for a model, and its run speaks", async () => {
  const { husam, space, claim, acting, lines, workspaceId, analyst } = await openGuest();
  const waiting = claim(20);
  await space.post(husam, "where is my parcel?");
  const claimed = await waiting;
  expect(claimed.events.map(({ type }) => type)).toEqual(["space_message"]);
  expect(JSON.stringify(claimed.input.messages)).toContain("where is my parcel?");
  expect(claimed.tools.map(({ name }) => name)).toContain("send_message");
  const { say, complete } = acting(claimed);
  const { call } = unwrap(await say("On its way."));
  expect(call).toMatchObject({ name: "send_message", status: "complete", output: { success: true } });
  expect(unwrap(await complete("told Husam"))).toMatchObject({ status: "completed", outcome: "answered" });
  expect(await lines()).toEqual(["Husam: where is my parcel?", "Analyst: On its way."]);
  expect(await inboxOf(workspaceId, analyst)).toEqual([]);
});

test("[G1] [R1] a batch waits in the inbox until it is claimed, and holds all that came", async () => {
  const { husam, space, claim, acting, workspaceId, analyst } = await openGuest({ continuity: "consciousness" });
  await space.post(husam, "one");
  await space.post(husam, "two");
  expect(await runsOf(workspaceId, analyst)).toEqual([]);
  const claimed = await claim(0);
  expect(claimed.events).toHaveLength(2);
  expect(unwrap(await acting(claimed).skip("nothing to say"))).toMatchObject({ status: "skipped" });
  expect(unwrap(await env.AGENT.getByName(analyst.id).claimRun(workspaceId, { waitSeconds: 0 }))).toBeNull();
});

test("[G2] the same key is the same call, also after the run; another input of it is refused", async () => {
  const { husam, space, claim, acting, lines } = await openGuest();
  await space.post(husam, "hello");
  const { say, complete } = acting(await claim());
  const [first, again] = await Promise.all([say("Hi.", "k"), say("Hi.", "k")]);
  expect(unwrap(again).call).toEqual(unwrap(first).call);
  expect(codeOf(await say("Something else.", "k"))).toBe("idempotency_mismatch");
  unwrap(await complete());
  expect(unwrap(await say("Hi.", "k")).call).toEqual(unwrap(first).call);
  expect(codeOf(await say("Once more.", "l"))).toBe("conflict");
  expect(await lines()).toEqual(["Husam: hello", "Analyst: Hi."]);
});

test("[G2] what a tool refuses is its result, as for a model, and the run goes on", async () => {
  const { husam, space, claim, acting } = await openGuest();
  await space.post(husam, "hello");
  const { call, complete } = acting(await claim());
  const code = async (name: string, input: object) =>
    unwrap(await call(name, input, `${name} ${JSON.stringify(input)}`));
  expect((await code("no_such_tool", {})).call).toMatchObject({
    status: "error",
    output: { error: { code: "tool_unknown" } },
  });
  const wrong = (await code("send_message", { text: 5 })).call;
  expect(wrong).toMatchObject({ status: "error", output: { error: { code: "tool_input_invalid" } } });
  expect(unwrap(await complete())).toMatchObject({ status: "completed", outcome: "silent" });
});

test("[G3] [D4] people see the words of a speech grow, and it ends as its message", async () => {
  const { husam, space, claim, acting } = await openGuest();
  const frames = await space.watch(husam);
  await space.post(husam, "hello");
  const { speak } = acting(await claim());
  const said = unwrap(await speak(['{"delta":"Hello "}', '{"delta":"\\"you\\""}', '{"done":true}', ""], "s"));
  expect(said.call).toMatchObject({ name: "send_message", input: { text: 'Hello "you"' }, status: "complete" });
  const words = frames.flatMap((frame) => (frame.type === "tool-input-delta" ? [frame.textDelta] : [])).join("");
  expect(words).toBe('Hello "you"');
  expect(frames.some(({ type }) => type === "tool-call.error")).toBe(false);
  const again = unwrap(await speak(['{"delta":"Hello \\"you\\""}', '{"done":true}', ""], "s"));
  expect(again.call).toEqual(said.call);
});

test("[G3] [D4] a speech without its last line is taken back, and the run goes on", async () => {
  const { husam, space, claim, acting, lines } = await openGuest();
  const frames = await space.watch(husam);
  await space.post(husam, "hello");
  const { speak, say } = acting(await claim());
  expect(codeOf(await speak(['{"delta":"Half a sen"}', ""], "s"))).toBe("interrupted");
  expect(codeOf(await speak(["nonsense", ""], "t"))).toBe("invalid_request");
  await vi.waitFor(() => expect(frames.map(({ type }) => type)).toContain("tool-call.error"));
  unwrap(await say("Whole."));
  expect(await lines()).toEqual(["Husam: hello", "Analyst: Whole."]);
});

test("[G4] [R3] a run whose holder is silent is given to the next claim, with what was done", async () => {
  const { husam, space, claim, acting, analyst, lines } = await openGuest();
  await space.post(husam, "hello");
  const lost = acting(await claim());
  unwrap(await lost.say("Half of it."));
  await passTime(analyst, 61_000);
  expect(codeOf(await lost.say("Too late."))).toBe("gone");
  await passTime(analyst, 10_000);
  const next = await claim();
  expect(next.run.steps.flatMap(({ toolCalls }) => toolCalls.map(({ name }) => name))).toEqual(["send_message"]);
  expect(JSON.stringify(next.input.messages)).toContain("Half of it.");
  expect(codeOf(await lost.say("Too late."))).toBe("gone");
  const { say, complete } = acting(next);
  unwrap(await say("The rest."));
  unwrap(await complete());
  expect(await lines()).toEqual(["Husam: hello", "Analyst: Half of it.", "Analyst: The rest."]);
});

test.each([
  "agent.after-take",
  "agent.mid-stream",
  "agent.after-call",
  "agent.after-effect",
  "agent.before-commit",
] as const)("[G4] [R2] a crash at %s loses and doubles nothing: the program asks again", async (point) => {
  const { husam, space, stub, acting, workspaceId, analyst, lines } = await openGuest();
  await space.post(husam, "hello");
  const crashed = armFault(point);
  const again = <T>(ask: () => Promise<Outcome<T>>): Promise<T> =>
    vi.waitFor(async () => unwrap(await ask()), { timeout: 10_000, interval: 50 });
  const claimed = await vi.waitFor(
    async () => {
      const given = await stub().claimRun(workspaceId, { waitSeconds: 0 });
      if (!given.ok || !given.value) throw new Error("no run came");
      return given.value;
    },
    { timeout: 10_000, interval: 50 },
  );
  const { speak, complete } = acting(claimed);
  await again(() => speak(['{"delta":"Hi"}', '{"delta":"."}', '{"done":true}'], "k"));
  await again(() => complete());
  await crashed;
  expect(await lines()).toEqual(["Husam: hello", "Analyst: Hi."]);
  expect((await runsOf(workspaceId, analyst)).map(({ status }) => status)).toEqual(["completed"]);
});

test("[G4] a run that failed is tried again; after the fifth failure its event is dead", async () => {
  const { husam, space, claim, acting, analyst, workspaceId } = await openGuest();
  await space.post(husam, "hello");
  for (let tried = 0; tried < 5; tried += 1) {
    expect(unwrap(await acting(await claim()).fail("my model is down"))).toMatchObject({ status: "failed" });
    await passTime(analyst, 60_000);
  }
  const [dead] = await inboxOf(workspaceId, analyst);
  expect(dead).toMatchObject({ status: "dead", attempts: 5, lastError: { code: "guest_failed" } });
});

test("[G5] [B2] tokens are estimated, and booked as reported where that is more", async () => {
  const { husam, space, claim, acting, stub, workspaceId } = await openGuest();
  const spent = async () => unwrap(await stub().describe(workspaceId)).activity?.tokensToday ?? 0;
  await space.post(husam, "one");
  const { say, complete } = acting(await claim());
  unwrap(await say("Hi."));
  const { steps } = unwrap(await complete());
  const estimated = steps.reduce((sum, { usage }) => sum + usage.inputTokens + usage.outputTokens, 0);
  expect(estimated).toBeGreaterThan(100);
  await space.post(husam, "two");
  const next = acting(await claim());
  const told = unwrap(await next.complete("", { inputTokens: 9000, outputTokens: 1000 }));
  expect(told.steps.map(({ usage }) => usage)).toEqual([{ inputTokens: 9000, outputTokens: 1000, estimated: false }]);
  expect(await spent()).toBeGreaterThanOrEqual(10_000);
});

test("[G1] a house agent is not claimed, and a guest's rule reminds whoever completes too early", async () => {
  const house = await openScene();
  const refused = await house.agent.claimRun(house.house.workspaceId, { waitSeconds: 0 });
  expect(codeOf(refused)).toBe("conflict");
  const toolRules = [{ tool: "send_message", rule: "required_before_exit" as const }];
  const { husam, space, claim, acting } = await openGuest({ toolRules });
  await space.post(husam, "hello");
  const { complete, say } = acting(await claim());
  expect(codeOf(await complete())).toBe("tool_rule_broken");
  unwrap(await say("Hi."));
  expect(unwrap(await complete())).toMatchObject({ status: "completed" });
});

test("[G7] members see that a guest is away and how many events wait, until a program claims", async () => {
  const { husam, space, claim, acting, stub, workspaceId, analyst } = await openGuest();
  const frames = await space.watch(husam);
  await space.post(husam, "one");
  await space.post(husam, "two");
  const connected = async () => unwrap(await stub().describe(workspaceId)).activity?.guest?.connected;
  expect(await connected()).toBe(true);
  await passTime(analyst, 11_000);
  expect(await connected()).toBe(false);
  const isAway = { type: "agent.inactive", reason: "guest_away", events: 2 };
  await vi.waitFor(() => expect(frames).toContainEqual(expect.objectContaining(isAway)));
  const [welcome] = await space.watch(husam);
  expect(welcome).toMatchObject({ waiting: [{ entityId: analyst.id, reason: "guest_away", events: 2 }] });
  unwrap(await acting(await claim()).complete());
  unwrap(await acting(await claim()).complete());
  expect(await connected()).toBe(true);
  await vi.waitFor(async () => expect((await space.watch(husam))[0]).toMatchObject({ waiting: [] }));
});

test("[G2] [R3] a run that waits for people is given up, and claimed with their answer", async () => {
  const ask = { name: "pick", description: "Asks", executionType: "space", answer: { expiresInMinutes: 10 } };
  const { husam, space, claim, acting } = await openGuest({ tools: [ask] as never });
  await space.post(husam, "which one?");
  const first = acting(await claim());
  const asked = unwrap(await first.call("pick", { of: ["red", "blue"] }, "pick"));
  expect(asked).toMatchObject({ call: { status: "waiting" }, leaseUntil: null });
  expect(codeOf(await first.say("meanwhile"))).toBe("gone");
  unwrap(await space.stub().answerToolCall(space.as(husam), asked.call.id, { result: "red" }));
  const next = acting(await claim());
  const again = unwrap(await next.call("pick", { of: ["red", "blue"] }, "pick"));
  expect(again.call).toMatchObject({ id: asked.call.id, status: "complete", output: "red" });
  unwrap(await next.say("red it is"));
  expect(unwrap(await next.complete())).toMatchObject({ status: "completed", outcome: "answered" });
});

test("[C7] [G4] why a program gave up stands in its run, and no space is told it", async () => {
  const { husam, space, claim, acting, analyst } = await openGuest();
  const frames = await space.watch(husam);
  await space.post(husam, "hello");
  for (let tried = 0; tried < 5; tried += 1) {
    const { error } = unwrap(await acting(await claim()).fail("cannot read the word quinces"));
    expect(error).toMatchObject({ code: "guest_failed", message: expect.stringContaining("quinces") });
    await passTime(analyst, 60_000);
  }
  const ended = frames.filter((frame) => frame.type === "run.failed");
  expect(ended).toMatchObject(ended.map(() => ({ error: { message: "The program gave up." } })));
  await vi.waitFor(() => expect(frames.map(({ type }) => type)).toContain("member.read"));
  expect(JSON.stringify(frames)).not.toContain("quinces");
});
