import { env } from "cloudflare:workers";
import { inject } from "vitest";
import { seal } from "../../src/auth/sealing.ts";
import { AgentConfig } from "../../src/protocol/agent.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { approved, ask, deploy, type Tool } from "../agent/calls/scene.ts";
import { yesTo } from "../support/as-shown.ts";
import type { Aftermath } from "./aftermath.ts";
import { type Act, type Scenario, says } from "./scenario.ts";
import { type Plan, scripted, type Turn } from "./scripts.ts";
import type { Stage } from "./stage.ts";

/** Every kind of call of both kinds of agents; each that has an effect has it at a server that counts. */
type Continuity = AgentConfig["continuity"];
type Kind = { tool: (path: string) => Tool; answers?: "person" | "server" };

const longCall = { name: "act", executionType: "external", timeoutMs: 600_000 };
const kinds = {
  hidden: { tool: (path) => deploy(path, { name: "act", visible: false }) },
  gateway: { tool: (path) => deploy(path, { name: "act" }) },
  repeatable: { tool: (path) => deploy(path, { name: "act", idempotent: true }) },
  approval: { tool: (path) => deploy(path, { name: "act", ...approved() }), answers: "person" },
  async: { tool: (path) => deploy(path, { name: "act", async: true }) },
  asked: { tool: () => ({ ...ask, name: "act" }), answers: "person" },
  pulled: { tool: () => longCall, answers: "server" },
  pushed: {
    tool: (path) => ({ ...longCall, execution: { url: `${inject("remote")}${path}`, secret: "KEY" } }),
    answers: "server",
  },
} satisfies { [kind: string]: Kind };
type KindName = keyof typeof kinds;

const wordsFor = (result: string): string => (result.includes("outcome_unknown") ? "Nobody knows." : "It is done.");

const planOf =
  (spaceId: string, continuity: Continuity) =>
  ({ heard, given }: Turn): Plan => {
    if (heard.includes("Tool result act") || heard.includes("type: tool_result")) {
      return [["send_message", { text: wordsFor(heard) }]];
    }
    const enter: Plan = continuity === "consciousness" ? [["enter_space", { spaceId }]] : [];
    const result = given.find(({ tool }) => tool === "act")?.output ?? "";
    const act: Plan = [...enter, ["act", { to: "prod" }]];
    return result.includes("pending") ? act : [...act, ["send_message", { text: wordsFor(result) }]];
  };

const withUnknown = (without: Aftermath): Aftermath => ({
  ...without,
  spaces: without.spaces.map((space) => ({
    ...space,
    messages: space.messages.map((message) => {
      if (message.text === "It is done.") return { ...message, text: "Nobody knows." };
      if (!message.toolCall) return message;
      const { output: _, ...call } = message.toolCall;
      return { ...message, toolCall: { ...call, status: "error", error: "outcome_unknown" } };
    }),
  })),
});

/** Where a call that must not be repeated ends as `outcome_unknown`. */
const unknownOf = (kind: KindName, continuity: Continuity): NonNullable<Scenario["unknown"]> => {
  const entered = continuity === "consciousness" ? 1 : 0;
  const ofRun = { "agent.after-call": { pass: entered, effects: 0 } };
  const ofRow = { "call.after-begin": { pass: 0, effects: 0 }, "call.after-perform": { pass: 0, effects: 1 } };
  if (kind === "hidden") return { ...ofRun, "agent.after-effect": { pass: entered, effects: 1 } };
  if (kind === "gateway") return { ...ofRun, ...ofRow, "call.after-tell": { pass: 0, effects: 0 } };
  return kind === "approval" || kind === "async" ? ofRow : {};
};

const open =
  (kind: KindName, continuity: Continuity) =>
  async (stage: Stage): Promise<Act[]> => {
    const { house, workspaceId, path } = stage;
    const { tool, answers }: Kind = kinds[kind];
    const { tools } = AgentConfig.parse({ name: "Worker", tools: [{ description: "Acts", ...tool(path) }] });
    const ann = await house.person("Ann");
    const worker = await stage.agent({ name: "Worker", continuity, tools });
    const stub = () => env.AGENT.getByName(worker.id);
    const secret = await seal(env, workspaceId, "KEY", `whsec_${btoa("a secret of twenty-four b")}`);
    unwrap(await stub().setSecrets(workspaceId, { KEY: secret }));
    const space = await stage.space("Lab", [ann, worker]);
    stage.play(scripted(planOf(space.id, continuity)));
    const shown = async () => (await space.messages()).find(({ toolCall }) => toolCall)?.toolCall;
    const given = async (): Promise<void> => {
      const asked = await shown();
      const id = asked?.id ?? "";
      const result = kind === "asked" ? { result: "sure" } : yesTo(asked ?? {});
      if (answers === "person") unwrap(await space.stub().answerToolCall(space.as(ann), id, result));
      else unwrap(await stub().answerToolCall(workspaceId, id, { result: "done" }));
    };
    const isGiven = async (): Promise<boolean> => {
      const status = (await shown())?.status;
      return answers === "person" ? status !== "requires_action" : status !== "running";
    };
    return [says(space, ann, "Go"), ...(answers ? [{ does: given, done: isGiven }] : [])];
  };

export const toolScenarios: Scenario[] = (Object.keys(kinds) as KindName[]).flatMap((kind) =>
  (["timeline", "consciousness"] as const).map((continuity) => ({
    name: `${kind} (${continuity === "timeline" ? "t" : "l"})`,
    open: open(kind, continuity),
    unknown: unknownOf(kind, continuity),
    withUnknown,
    ...(kind === "async" || (kind === "approval" && continuity === "consciousness") ? { beside: true as const } : {}),
    ...(kind === "repeatable" ? { repeated: { "call.after-perform": { pass: 0, effects: 2 } } } : {}),
  })),
);
