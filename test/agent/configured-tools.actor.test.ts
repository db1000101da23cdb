import { env } from "cloudflare:workers";
import { afterEach, describe, expect, inject, test, vi } from "vitest";
import { seal } from "../../src/auth/sealing.ts";
import { AgentConfig } from "../../src/protocol/agent.ts";
import type { EntityRef } from "../../src/protocol/rpc.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { armFault, disarmFaults } from "../../src/shared/fault.ts";
import { compartmentId } from "../../src/shared/ids.ts";
import { SeenRequests } from "../support/remote.ts";
import { call, installModel, type ScriptedPart, scriptedModel, step, text } from "../support/scripted-model.ts";
import { type AgentSettings, ended, ids, inboxOf, openHouse, passTime, rowsIn, runsOf, userTexts } from "./fixture.ts";

/** Tools that an agent's owner wrote, called by a scripted model, over real HTTP where they go out. */
let restore: (() => void) | undefined;
afterEach(() => {
  restore?.();
  disarmFaults();
  vi.useRealTimers();
});

/** As an owner would write it. */
type Tool = { name: string; executionType: string; [field: string]: unknown };

const described = (tools: Tool[]): unknown[] => tools.map((tool) => ({ description: `Does ${tool.name}`, ...tool }));

const requestsTo = async (path: string) =>
  SeenRequests.parse(await (await fetch(`${inject("remote")}/requests?path=${encodeURIComponent(path)}`)).json());

/** An agent with these tools, whose model makes these steps; answers the run that a person's message began. */
const runWith = async (
  tools: Tool[],
  steps: ScriptedPart[][],
  {
    secrets = {},
    confidential = false,
    ...settings
  }: Partial<AgentSettings> & { secrets?: Record<string, string>; confidential?: boolean } = {},
  meanwhile: (agent: EntityRef) => Promise<unknown> = async () => undefined,
) => {
  const house = await openHouse();
  const { tools: parsed } = AgentConfig.parse({ name: "Worker", tools: described(tools) });
  const agent = await house.agent({ name: "Worker", ...settings, tools: parsed });
  const sealed = await Promise.all(
    Object.entries(secrets).map(async ([name, value]) => [name, await seal(env, house.workspaceId, name, value)]),
  );
  unwrap(await env.AGENT.getByName(agent.id).setSecrets(house.workspaceId, Object.fromEntries(sealed)));
  const model = scriptedModel([...steps.map((parts) => step(...parts)), step(text("Done."))]);
  restore = installModel(model);
  const person = await house.person("Ann");
  const space = await house.space("Lab", [person, agent], confidential);
  const mind = confidential ? { ...agent, id: compartmentId(ids, agent.id, space.id) } : agent;
  await space.post(person, "Go");
  await meanwhile(agent);
  const [run] = await ended(house.workspaceId, mind, 1);
  if (!run) throw new Error("no run");
  const full = unwrap(await env.AGENT.getByName(mind.id).run(house.workspaceId, run.id));
  const calls = full.steps.flatMap(({ toolCalls }) => toolCalls);
  return { run: full, calls, model, house, agent, mind, space, person };
};

const gateway = (path: string, execution: object = {}, more: object = {}): Tool => ({
  name: "ask",
  executionType: "gateway",
  // Nothing is active in a living agent's first cycle, so nothing could show.
  visible: false,
  execution: { url: `${inject("remote")}${path}`, method: "GET", ...execution },
  inputSchema: { type: "object", properties: { q: { type: "string", minLength: 2 } }, required: ["q"] },
  ...more,
});

const ask = (q: unknown = "hello"): ScriptedPart[] => [call("ask", { q })];

const failure = (code: string, message: string | RegExp) => ({
  success: false,
  error: { code, message: typeof message === "string" ? message : expect.stringMatching(message) },
});

describe("an internal tool", () => {
  test("answers its output, or its input, and goes on", async () => {
    const { calls, run } = await runWith(
      [
        { name: "fixed", executionType: "internal", output: { status: "ok" } },
        { name: "echo", executionType: "internal" },
      ],
      [[call("fixed", {}), call("echo", { a: [1] })]],
    );
    expect(calls).toMatchObject([
      { name: "fixed", status: "complete", output: { status: "ok" } },
      { name: "echo", status: "complete", output: { a: [1] } },
    ]);
    expect(run.status).toBe("completed");
  });
});

describe("a gateway tool", () => {
  test.each([
    [false, "a/../b", "/echo/a%2F..%2Fb"],
    [true, "a/../c", "/echo/a%2F..%2Fc"],
  ])("[S3] sends the model's input and secrets, which come back redacted (confidential: %s)", async (...given) => {
    const [confidential, q, path] = given;
    const { calls, model, house, mind } = await runWith(
      [
        gateway(
          `/echo/{{input.q}}?key=\${secret.KEY}`,
          {
            method: "POST",
            headers: { Authorization: `Bearer \${secret.KEY}` },
            body: { q: "{{input.q}}", key: `\${secret.KEY}` },
          },
          { confidential: "allowed" },
        ),
      ],
      [ask(q)],
      { secrets: { KEY: "s3cr&t-value" }, confidential },
    );
    expect(calls).toMatchObject([
      {
        status: "complete",
        output: {
          method: "POST",
          url: `${path}?key=[redacted]`,
          headers: { authorization: "Bearer [redacted]", "content-type": "application/json", "user-agent": "Colloquy" },
          body: `{"q":"${q}","key":"[redacted]"}`,
        },
      },
    ]);
    expect(await requestsTo(path)).toMatchObject([
      {
        url: `${path}?key=s3cr%26t-value`,
        headers: { authorization: "Bearer s3cr&t-value", "idempotency-key": calls[0]?.id },
        body: `{"q":"${q}","key":"s3cr&t-value"}`,
      },
    ]);
    const described = await env.AGENT.getByName(mind.id).describe(house.workspaceId);
    expect(JSON.stringify([model.calls, described])).not.toMatch(/s3cr(&|%26)t/);
  });

  test("[S3] a secret that comes back in pieces, or in an error, is redacted too", async () => {
    const split = "/answer?status=403&type=text/plain&body=denied%20s3cr&body=&body=3t-va&body=lue";
    const { calls } = await runWith([gateway(split, { headers: { "X-Key": `\${secret.KEY}` } })], [ask()], {
      secrets: { KEY: "s3cr3t-value" },
    });
    expect(calls).toMatchObject([
      { status: "error", output: failure("tool_failed", /server answered 403: "denied \[redacted\]"$/) },
    ]);
  });

  test("[S3] a secret that is not there is named", async () => {
    const { calls } = await runWith([gateway(`/echo?key=\${secret.GONE}`)], [ask()]);
    expect(calls).toMatchObject([{ status: "error", output: failure("tool_misconfigured", /"GONE"/) }]);
  });

  test("[S4] input that breaks the schema runs nothing: the model is told where and what", async () => {
    const { calls, run } = await runWith(
      [gateway("/echo/never-asked")],
      [[call("ask", { q: "x" })], [call("ask", {})], [call("ask", { q: 5 })], [call("ask", ["q"])]],
    );
    expect(calls.map(({ output }) => output)).toEqual([
      failure("tool_input_invalid", /^q: .*too short/),
      failure("tool_input_invalid", /^input: .*"q"/),
      failure("tool_input_invalid", /^q: .*"string"/),
      failure("tool_input_invalid", /^input: .*"object"/),
    ]);
    expect(run.status).toBe("completed");
    expect(await requestsTo("/echo/never-asked")).toEqual([]);
  });

  test.each<[string, string, unknown]>([
    ["JSON is parsed", "/answer?body={%22a%22:[1,null]}", { a: [1, null] }],
    ["JSON of its own kind is parsed", "/answer?type=application/problem%2Bjson&body={}", {}],
    ["broken JSON is text", "/answer?body={%22a%22:", '{"a":'],
    ["text is text", "/answer?type=text/plain;charset=utf-8&body=%C3%A4", "ä"],
    ["nothing is its status", "/answer?status=204", { status: 204 }],
    [
      "what is neither is described",
      "/answer?type=image/png&body=xyz",
      { contentType: "image/png", note: expect.any(String) },
    ],
  ])("%s", async (_, path, output) => {
    const { calls } = await runWith([gateway(path)], [ask()]);
    expect(calls).toMatchObject([{ status: "complete", output }]);
  });

  test("[B3][S4] of 50 MiB, a beginning is read, and that is said", async () => {
    const { calls } = await runWith([gateway("/huge/one")], [ask()]);
    const output = calls[0]?.output as { text: string; note: string };
    expect(output.note).toContain("maxToolOutputBytes");
    expect(output.text).toMatch(/^x+$/);
    expect(output.text.length).toBeLessThanOrEqual(256 * 1024);
    const [seen] = await requestsTo("/huge/one");
    expect(seen?.written).toBeLessThan(25 * 1024 * 1024);
  });

  test("[B3] what is no text is not read at all", async () => {
    const { calls } = await runWith([gateway("/huge/two?type=application/zip")], [ask()]);
    expect(calls).toMatchObject([{ status: "complete", output: { contentType: "application/zip" } }]);
  });

  test.each(["/never", "/silent"])("[B3][S4] %s is given up after timeoutMs", async (path) => {
    const { calls } = await runWith([gateway(path, {}, { timeoutMs: 300 })], [ask()]);
    expect(calls).toMatchObject([{ status: "error", output: failure("tool_timeout", /took longer than timeoutMs/) }]);
  });

  test.each([
    ["127.0.0.1", "http://127.0.0.1:1/"],
    ["metadata", "https://169.254.169.254/latest/meta-data"],
    ["metadata, in a confidential space,", "https://169.254.169.254/latest/meta-data", true],
    ["plain http", "http://example.com/"],
    ["itself", "/echo"],
  ])("[S3] a redirect to %s is not followed", async (_, location, confidential = false) => {
    const path = `/answer?status=302&location=${encodeURIComponent(location)}`;
    const { calls } = await runWith([gateway(path, {}, { confidential: "allowed" })], [ask()], { confidential });
    expect(calls).toMatchObject([{ status: "error", output: failure("tool_failed", /redirects/) }]);
    expect(JSON.stringify(calls)).not.toContain("meta-data");
  });

  test("a server that is not there is a failure in words", async () => {
    const { calls } = await runWith([gateway("", { url: "http://127.0.0.1:9/" })], [ask()]);
    expect(calls).toMatchObject([{ status: "error", output: failure("tool_failed", /could not be reached/) }]);
  });
});

/** What may have been done, as its model is told. */
const unknown = (message: string) =>
  failure("outcome_unknown", new RegExp(`${message}.*; whether it took effect is not known: find out before`));
const closed = { url: "http://127.0.0.1:9/" };
const elsewhere = (status: number, location: string) =>
  `/answer?status=${status}&location=${encodeURIComponent(location)}`;

describe("[R3] a request of a gateway tool that may have been taken, and whose answer never came", () => {
  test.each<[string, string, object, string]>([
    ["is cut off after it was read", "/reset/pay", {}, "broke before an answer came"],
    ["is cut off before it was read", "/refuse/pay", {}, "broke before an answer came"],
    // By what workerd's `fetch` throws, nobody can tell it from the others.
    ["comes to a port that is closed", "", closed, "broke before an answer came"],
    ["gets half of an answer", "/half/pay", {}, 'answered 200.*in the middle: .*"paid'],
    ["gets no answer in time", "/silent/pay", { timeoutMs: 300 }, "longer than timeoutMs"],
    ["gets no end of an answer in time", "/never/pay", { timeoutMs: 300 }, "longer than timeoutMs"],
    ["is answered by a gateway: no answer came", "/answer?status=504&body=late", {}, 'answered 504: "late"'],
    ["is answered by Cloudflare: it took too long", "/answer?status=524", {}, "answered 524"],
    ["is done, and then leads nowhere", elsewhere(303, "http://127.0.0.1:1/"), {}, "redirects, and there"],
  ])(
    "%s: its outcome is unknown, and it is made once",
    async (_, path, {
      timeoutMs = 30_000,
      ...execution
    }: {
      timeoutMs?: number;
    }, told) => {
      const post = { method: "POST", body: { q: "{{input.q}}" }, ...execution };
      const { calls, run } = await runWith([gateway(path, post, { timeoutMs })], [ask()]);
      expect(calls).toMatchObject([{ status: "error", output: unknown(told) }]);
      expect(run.status).toBe("completed");
      if (path.endsWith("/pay")) expect((await requestsTo(path)).length).toBeLessThanOrEqual(1);
    },
  );

  test.each<[string, object, object, string, RegExp]>([
    ["/reset", {}, { idempotent: true }, "tool_failed", /broke before an answer came/],
    ["/reset", { method: "GET", body: undefined }, {}, "tool_failed", /broke before an answer came/],
    ["/half", {}, { idempotent: true }, "tool_failed", /in the middle/],
    ["/silent", {}, { idempotent: true, timeoutMs: 300 }, "tool_timeout", /longer than timeoutMs/],
    ["/answer?status=504", {}, { idempotent: true }, "tool_failed", /answered 504/],
  ])("may be made again where nothing comes of that: $0 is $3 (%#)", async (path, execution, more, code, told) => {
    const post = { method: "POST", body: {}, ...execution };
    const { calls } = await runWith([gateway(path, post, more)], [ask()]);
    expect(calls).toMatchObject([{ status: "error", output: failure(code, told) }]);
  });

  test.each<[string, string, object, string, RegExp]>([
    ["a redirect that nothing was done for", elsewhere(307, "http://127.0.0.1:1/"), {}, "tool_failed", /redirects/],
    ["a refusal", "/answer?status=409&body=no", {}, "tool_failed", /answered 409: "no"/],
    ["a server's own failure", "/answer?status=500", {}, "tool_failed", /answered 500/],
    ["Cloudflare, which reached nobody", "/answer?status=521", {}, "tool_failed", /answered 521/],
    ["a secret that is not there", `/echo?key=\${secret.GONE}`, {}, "tool_misconfigured", /GONE/],
  ])("is told from what certainly came to nothing: %s", async (_, path, execution, code, told) => {
    const { calls } = await runWith([gateway(path, { method: "POST", body: {}, ...execution })], [ask()]);
    expect(calls).toMatchObject([{ status: "error", output: failure(code, told) }]);
  });
});

test("[S4] a config whose tools cannot be used stores nothing, and says where and why", async () => {
  const house = await openHouse();
  const id = ids.mint("ent");
  const config = AgentConfig.parse({
    name: "Worker",
    tools: described([
      { name: "send_message", executionType: "internal" },
      gateway("", { url: "https://{{input.host}}/" }),
      { name: "typo", executionType: "internal", inputSchema: { type: "object", properties: { a: { type: "text" } } } },
    ]),
    toolRules: [
      { tool: "nothing", rule: "exit_loop" },
      { tool: "ask", rule: "requires_prior", tools: ["typo", "gone"] },
    ],
    mcp: { servers: [{ name: "inside", url: "https://10.0.0.1/mcp" }] },
  });
  const refused = await env.AGENT.getByName(id).create({ id, workspaceId: house.workspaceId, config });
  expect(refused).toMatchObject({ ok: false, problem: { code: "invalid_request" } });
  expect(refused.ok ? [] : refused.problem.issues?.map(({ path }) => path)).toEqual([
    "tools.0.name",
    "tools.1.execution.url",
    "tools.2.inputSchema.properties.a.type",
    "toolRules.0.tool",
    "toolRules.1.tools.1",
    "mcp.servers.0.url",
  ]);
  expect(await env.AGENT.getByName(id).describe(house.workspaceId)).toMatchObject({ problem: { code: "not_found" } });
});

test("[S4] a change of the tools is checked as a whole, and changes nothing where it is refused", async () => {
  const house = await openHouse();
  const agent = await house.agent({ name: "Worker" });
  const stub = env.AGENT.getByName(agent.id);
  const { tools } = AgentConfig.parse({ name: "W", tools: described([{ name: "note", executionType: "internal" }]) });
  const rule = { tool: "note", rule: "max_calls", count: 1 } as const;
  unwrap(await stub.update(house.workspaceId, { tools, toolRules: [rule] }));
  expect(await stub.update(house.workspaceId, { tools: [] })).toMatchObject({
    problem: { code: "invalid_request", issues: [{ path: "toolRules.0.tool" }] },
  });
  expect(unwrap(await stub.describe(house.workspaceId)).config).toMatchObject({ tools, toolRules: [rule] });
});

const internal = (name: string): Tool => ({ name, executionType: "internal", output: { done: name } });

describe.each(["consciousness", "timeline"] as const)("tool rules of a %s", (continuity) => {
  const ruled = (toolRules: AgentConfig["toolRules"], steps: ScriptedPart[][]) =>
    runWith([internal("log"), internal("pay"), internal("finish")], steps, { continuity, toolRules });

  test("stand in the instructions; a call that breaks one is answered with it, the run goes on", async () => {
    const { calls, run, model } = await ruled(
      [
        { tool: "log", rule: "start_constraint" },
        { tool: "pay", rule: "max_calls", count: 1 },
      ],
      [
        [call("pay", {}), call("log", {})],
        [call("pay", {}), call("pay", {})],
      ],
    );
    expect(calls.map(({ output }) => output)).toEqual([
      failure("tool_rule_broken", "not executed, it breaks a rule: Call `log` first before any other tools"),
      { done: "log" },
      { done: "pay" },
      failure("tool_rule_broken", "not executed, it breaks a rule: Call `pay` at most 1 times"),
    ]);
    expect(run.status).toBe("completed");
    expect(JSON.stringify(model.calls[0]?.prompt)).toContain("# Tool Execution Rules\\n\\n- Call `log` first");
  });

  test("[R5] a call that ends the loop ends it, after every call of its step has its result", async () => {
    const { calls, run, model } = await ruled(
      [{ tool: "finish", rule: "exit_loop" }],
      [[call("finish", {}), call("log", {})], [call("pay", {})]],
    );
    expect(calls.map(({ status, name }) => [name, status])).toEqual([
      ["finish", "complete"],
      ["log", "complete"],
    ]);
    expect([run.status, model.calls.length]).toEqual(["completed", 1]);
  });

  test("an exit without a required call is answered once, and may then be put right", async () => {
    const { run, calls, model } = await ruled(
      [{ tool: "log", rule: "required_before_exit" }],
      [[text("I am done.")], [call("log", {})]],
    );
    expect(JSON.stringify(model.calls[1]?.prompt.at(-1))).toContain(
      "REMINDER: Call `log` before ending the conversation.",
    );
    expect([run.status, calls.length, model.calls.length]).toEqual(["completed", 1, 3]);
  });

  test("an exit against a reminder fails the run, whose events are not tried again", async () => {
    const { run, house, agent, model } = await ruled(
      [{ tool: "log", rule: "required_before_exit" }],
      [[text("I am done.")], [text("I said that I am done.")]],
    );
    expect(run).toMatchObject({ status: "failed", error: { code: "tool_rule_broken" } });
    expect(run.error?.message).toContain("Call `log` before ending the conversation");
    expect(model.calls).toHaveLength(2);
    expect(await inboxOf(house.workspaceId, agent)).toEqual([]);
  });

  test("a change of the tools takes effect with the next run, and begins a new window", async () => {
    const { model, house, agent, space, person } = await ruled([], [[call("log", {})]]);
    const before = unwrap(await env.AGENT.getByName(agent.id).describe(house.workspaceId)).config;
    const [log, pay] = before.tools;
    if (!log || !pay) throw new Error("no tools");
    unwrap(await env.AGENT.getByName(agent.id).update(house.workspaceId, { tools: [pay, log] }));
    model.push(step(call("finish", {})), step(text("Done.")));
    await space.post(person, "Again");
    const [, run] = await ended(house.workspaceId, agent, 2);
    expect(run?.steps[0]?.toolCalls).toMatchObject([{ name: "finish", output: { error: { code: "tool_unknown" } } }]);
    const declared = model.calls.map(({ tools = [] }) => tools.map(({ name }) => name).slice(-3));
    expect(declared[0]).toEqual(["log", "pay", "finish"]);
    expect(declared[2]?.slice(1)).toEqual(["pay", "log"]);
    if (continuity === "consciousness") expect(userTexts(model.calls[2]).at(-1)).toContain("YOUR SPACES");
  });
});

test("[R3] a call that was cut is made again only if the tool is idempotent", async () => {
  for (const [idempotent, path] of [
    [true, "/echo/again"],
    [false, "/echo/once"],
  ] as const) {
    const crashed = armFault("agent.after-effect");
    const back = async (agent: EntityRef): Promise<void> => {
      await crashed;
      await vi.waitFor(() => passTime(agent, 26_000), { timeout: 5000, interval: 50 });
    };
    const { calls } = await runWith([gateway(path, {}, { idempotent })], [ask()], {}, back);
    expect(calls[0]?.output).toMatchObject(idempotent ? { url: path } : failure("outcome_unknown", /not known/));
    expect(await requestsTo(path)).toHaveLength(idempotent ? 2 : 1);
  }
});

test("[R4][R5] a slow tool has not stalled; a run that is canceled no longer waits for it", async () => {
  vi.useFakeTimers({ toFake: ["Date", "setInterval", "clearInterval"] });
  const path = "/silent/patient";
  const patiently = async (agent: EntityRef): Promise<void> => {
    await vi.waitFor(async () => expect(await requestsTo(path)).toHaveLength(1), { timeout: 5000 });
    for (let passed = 0; passed < 4 * 60_000; passed += 30_000) {
      vi.advanceTimersByTime(30_000);
      await passTime(agent, 0);
    }
    const stub = env.AGENT.getByName(agent.id);
    const [row] = await rowsIn(agent, "SELECT workspace_id FROM agent");
    const workspaceId = String(row?.workspace_id);
    const [run] = await runsOf(workspaceId, agent);
    expect(run).toMatchObject({ status: "running", steps: [{ toolCalls: [{ status: "started" }] }] });
    unwrap(await stub.cancelRun(workspaceId, run?.id ?? ""));
  };
  const { run } = await runWith([gateway(path, {}, { timeoutMs: 600_000 })], [ask()], {}, patiently);
  expect(run.status).toBe("canceled");
  await vi.waitFor(async () => expect(await requestsTo(path)).toMatchObject([{ closed: true }]), { timeout: 5000 });
});
