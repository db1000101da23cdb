import { describe, expect, test } from "vitest";
import { configInCompartment, newReaders, warningsOf } from "../../src/agent/run/settings.ts";
import { AgentConfig } from "../../src/protocol/agent.ts";
import { Compaction, ContextConfig } from "../../src/protocol/context-config.ts";

test("[C18] a compartment has the tools that its owner allows, no heartbeat, and a warning", () => {
  const url = "https://tools.example/mcp";
  const config = AgentConfig.parse({
    name: "Polaris",
    heartbeat: { everyMinutes: 60 },
    tools: [
      { name: "mail", description: "Mails", executionType: "external" },
      { name: "look", description: "Looks up", executionType: "internal", confidential: "allowed" },
    ],
    mcp: {
      servers: [
        { name: "web", url },
        { name: "files", url, confidential: "allowed" },
      ],
    },
    toolRules: [
      { tool: "mail", rule: "start_constraint" },
      { tool: "web__find", rule: "required_before_exit" },
      { tool: "files__open", rule: "exit_loop" },
      { tool: "look", rule: "requires_prior", tools: ["mail"] },
    ],
  });
  expect(warningsOf(config)).toEqual([
    'toolRules.3: in confidential spaces each call of look is refused, since it requires mail, which runs there do not have. Give that confidential: "allowed", or take the rule away.',
  ]);
  const effective = configInCompartment(config);
  expect(warningsOf(effective)).toEqual([]);
  expect(effective.heartbeat).toBeUndefined();
  expect(effective.tools.map(({ name }) => name)).toEqual(["look"]);
  expect(effective.mcp.servers.map(({ name }) => name)).toEqual(["files"]);
  expect(effective.toolRules.map(({ tool }) => tool)).toEqual(["files__open", "look"]);
  expect({ ...effective, heartbeat: config.heartbeat, tools: [], mcp: {}, toolRules: [] }).toEqual({
    ...config,
    ...{ tools: [], mcp: {}, toolRules: [] },
  });
});

describe("[C19] who is told words of a compartment by a changed config, and was not before", () => {
  const mine = { provider: "openai-compatible", name: "a-model", baseUrl: "https://mine.example/v1" };
  const yours = { ...mine, baseUrl: "https://yours.example/v1" };
  const summarized = (model?: object) => ({ compaction: { strategy: "recursive_summarization", model } });
  const allowed = <Thing>(thing: Thing) => ({ ...thing, confidential: "allowed" });
  const mail = { name: "mail", description: "Mails", executionType: "gateway", execution: { url: mine.baseUrl } };
  const requested = (execution: object) => [allowed({ ...mail, execution: { ...mail.execution, ...execution } })];
  const web = { name: "web", url: mine.baseUrl };
  const told = { model: mine, embedder: mine, context: summarized(mine), mcp: { servers: [allowed(web)] } };
  const before = { name: "Polaris", ...told, tools: [allowed(mail)] };

  /** Every field of a config: a change that tells nobody new, and changes that do. */
  const fields: Record<keyof AgentConfig, [unknown, ...unknown[]]> = {
    ...{ name: ["Vega"], description: ["Answers"], instructions: ["Be kind."], memoryTools: [false] },
    ...{ continuity: ["timeline"], messaging: ["threaded"], limits: [{ maxTokensPerDay: 1000 }] },
    ...{ heartbeat: [{ everyMinutes: 5 }], toolRules: [[{ tool: "mail", rule: "start_constraint" }]] },
    runtime: ["house", "guest"],
    model: [{ ...mine }, yours, { ...mine, apiKeySecret: "other" }, { alias: "fast" }],
    embedder: [undefined, yours],
    context: [{ historyMessages: 3 }, summarized(yours)],
    tools: [[mail], requested({ url: yours.baseUrl }), requested({ headers: { to: "me" } }), requested({ body: 1 })],
    mcp: [{ servers: [web] }, { servers: [allowed({ ...web, url: yours.baseUrl })] }],
  };

  test("every field is classified here, also those of the context and its compaction", () => {
    expect(Object.keys(fields).toSorted()).toEqual(Object.keys(AgentConfig.shape).toSorted());
    // Only `compaction.model` of these tells somebody. Whoever adds a field decides that, in `newReaders` and above.
    expect([Object.keys(ContextConfig.shape).length, Object.keys(Compaction.shape).length]).toEqual([13, 4]);
  });

  test.each(Object.entries(fields))("%s", (field, values) => {
    const changed = values.map((value) => AgentConfig.parse({ ...before, [field]: value }));
    const [none = [], ...some] = changed.map((config) => newReaders(AgentConfig.parse(before), config));
    expect([none, ...some]).toEqual([[], ...some.map(() => [field])]);
  });

  test("its model is told what a guest's program alone was, unless that wrote its summaries", () => {
    const from = (more: object, then: object) => {
      const guest = { ...before, runtime: "guest", context: {}, ...more };
      return newReaders(AgentConfig.parse(guest), AgentConfig.parse({ ...guest, ...then }));
    };
    expect(from({}, { runtime: "house" })).toEqual(["model"]);
    expect(from({}, { model: yours })).toEqual([]);
    expect(from({}, { context: summarized() })).toEqual(["model"]);
    expect(from({ context: summarized() }, { runtime: "house" })).toEqual([]);
    expect(from({ context: summarized(mine) }, { runtime: "house" })).toEqual(["model"]);
  });

  test("a rule that binds an allowed tool is taken away or changed: then more words go out by it", () => {
    const rules = [
      { tool: "mail", rule: "max_calls", count: 1 },
      { tool: "web__find", rule: "requires_prior", tools: ["mail"] },
      { tool: "send_message", rule: "start_constraint" },
      { tool: "send_message", rule: "required_before_exit" },
    ];
    const ruled = AgentConfig.parse({ ...before, toolRules: rules });
    const after = (toolRules: object[], more: object = {}) =>
      newReaders(ruled, AgentConfig.parse({ ...before, ...more, toolRules }));
    const without = (index: number) => rules.toSpliced(index, 1);
    expect([0, 1, 2, 3].map((index) => after(without(index)))).toEqual([
      ["toolRules"],
      ["toolRules"],
      ["toolRules"],
      [],
    ]);
    expect(after([{ ...rules[0], count: 9 }, ...without(0)])).toEqual(["toolRules"]);
    expect(after([...rules, { tool: "mail", rule: "exit_loop" }])).toEqual([]);
    // A tool that is not there any more sends nothing.
    expect(after([], { tools: [], mcp: { servers: [] } })).toEqual([]);
  });

  test("nobody keeps a rule that asks for a tool of the runtime until the agent has it", () => {
    const needs = (...tools: string[]) => [{ tool: "mail", rule: "requires_prior", tools }];
    const from = (more: object, toolRules: object[], then: object) =>
      newReaders(
        AgentConfig.parse({ ...before, ...more, toolRules }),
        AgentConfig.parse({ ...before, ...more, toolRules, ...then }),
      );
    expect(from({ memoryTools: false }, needs("recall"), { memoryTools: true })).toEqual(["toolRules"]);
    expect(from({}, needs("send_reply"), { messaging: "threaded" })).toEqual(["toolRules"]);
    const starts = [{ tool: "leave_space", rule: "start_constraint" }];
    expect(from({ continuity: "timeline" }, starts, { continuity: "consciousness" })).toEqual(["toolRules"]);
    expect(from({}, needs("recall", "send_message"), { memoryTools: false })).toEqual([]);
  });
});
