import { env } from "cloudflare:workers";
import { vi } from "vitest";
import { hookSecretName, seal } from "../../src/auth/sealing.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { passesOf } from "../../src/shared/fault.ts";
import { ids, runsOf } from "../agent/fixture.ts";
import { createGate, type Gate } from "../support/gate.ts";
import {
  apiError,
  call,
  errorPart,
  refusal,
  type ScriptedPart,
  scriptedModel,
  step,
  text,
  waitAt,
} from "../support/scripted-model.ts";
import { deliver, signed } from "../support/webhook-sender.ts";
import { followerScenarios } from "./follower-scenarios.ts";
import { type Scenario, says } from "./scenario.ts";
import { scripted, turnOf } from "./scripts.ts";
import type { Stage } from "./stage.ts";
import { toolScenarios } from "./tool-scenarios.ts";

const timeline = { continuity: "timeline" } as const;

/** A space of Husam and an agent. */
const pair = async (stage: Stage, settings: object = {}) => {
  const husam = await stage.house.person("Husam");
  const analyst = await stage.agent({ name: "Analyst", ...settings });
  return { husam, analyst, space: await stage.space("Alpha", [husam, analyst]) };
};

const key = (workspaceId: string) => ({ kind: "key", workspaceId, keyId: "key" }) as const;

const singleReply: Scenario = {
  name: "single reply",
  open: async (stage) => {
    const { husam, space } = await pair(stage);
    stage.play(
      scripted(() => [
        ["enter_space", { spaceId: space.id }],
        ["set_memories", { memories: [{ key: "asked", value: "yes" }] }],
        ["send_message", { text: "Said once." }, [10, 15]],
      ]),
    );
    return [says(space, husam, "Say it once")];
  },
};

/** All of it is in the agent's compartment there, which takes its tokens from the open mind's day. */
const confidential: Scenario = {
  name: "confidential",
  open: async (stage) => {
    const husam = await stage.house.person("Husam");
    const analyst = await stage.agent({ name: "Analyst" });
    const space = await stage.space("Board", [husam, analyst], true);
    stage.play(
      scripted(({ heard }) => [
        ["set_memories", { memories: [{ key: heard.includes("more") ? "more" : "asked", value: "yes" }] }],
        ["send_message", { text: "Kept here." }, [10, 15]],
      ]),
    );
    return [says(space, husam, "Keep it here"), says(space, husam, "And more")];
  },
};

const timelineReply: Scenario = {
  name: "timeline reply",
  open: async (stage) => {
    const { husam, space } = await pair(stage, { ...timeline, messaging: "threaded" });
    stage.play(
      scripted(({ heard }) => [
        ["send_reply", { replyToMessageId: /\[(msg_\w+)\]/.exec(heard)?.[1], text: "To you." }, [60, 70, 80, 90]],
        ["send_message", { text: "To all." }],
      ]),
    );
    return [says(space, husam, "Answer me")];
  },
};

const twoAgents: Scenario = {
  name: "two agents",
  open: async (stage) => {
    const husam = await stage.house.person("Husam");
    const analyst = await stage.agent({ name: "Analyst", ...timeline });
    const writer = await stage.agent({
      name: "Writer",
      model: { provider: "rehearsal", name: "writer", deltasPerSecond: 0 },
    });
    const space = await stage.space("Alpha", [husam, analyst, writer]);
    unwrap(await space.stub().update(key(stage.workspaceId), { wakePolicy: "addressed" }));
    const asks = scripted(({ heard }) => [
      ["send_message", { text: heard.includes("Written") ? "Thank you, @Writer" : "@Writer please write it" }],
    ]);
    const writes = scripted(({ heard }) =>
      heard.includes("Thank you")
        ? []
        : [
            ["enter_space", { spaceId: space.id }],
            ["send_message", { text: "Written, @Analyst" }, [12]],
          ],
    );
    stage.play(asks, { writer: writes });
    return [says(space, husam, "@Analyst have it written")];
  },
};

const crossSpace: Scenario = {
  name: "cross-space",
  open: async (stage) => {
    const { husam, analyst, space: alpha } = await pair(stage, { ...timeline, messaging: "threaded" });
    const carol = await stage.house.person("Carol");
    const beta = await stage.space("Beta", [carol, analyst]);
    const asked = "@Carol is it ready?";
    stage.play(
      scripted(({ heard }) =>
        heard.includes("RESUME")
          ? [
              ["enter_space", { spaceId: alpha.id }],
              ["send_message", { text: "It is ready." }],
            ]
          : [
              ["enter_space", { spaceId: beta.id }],
              ["send_message", { text: asked, wait: true }],
            ],
      ),
    );
    return [says(alpha, husam, "Is it ready?"), says(beta, carol, "It is")];
  },
};

const askingCycle: Scenario = {
  name: "a cycle asks",
  open: async (stage) => {
    const { husam, analyst, space: alpha } = await pair(stage, { messaging: "threaded" });
    const [carol, sara] = [await stage.house.person("Carol"), await stage.house.person("Sara")];
    const beta = await stage.space("Beta", [carol, sara, analyst]);
    const asked = "@Carol @Sara is it ready?";
    stage.play(
      scripted(({ heard }) =>
        heard.includes("[answer to ")
          ? [
              ["enter_space", { spaceId: alpha.id }],
              ["send_message", { text: "It is ready." }],
            ]
          : [
              ["enter_space", { spaceId: beta.id }],
              ["send_message", { text: asked, wait: true }],
            ],
      ),
    );
    return [says(alpha, husam, "Is it ready?"), says(beta, carol, "It is"), says(beta, sara, "Yes")];
  },
};

const plan: Scenario = {
  name: "plan",
  open: async (stage) => {
    const { husam, space } = await pair(stage, timeline);
    stage.play(
      scripted(({ heard }) =>
        heard.includes("type: plan")
          ? [
              ["enter_space", { spaceId: space.id }],
              ["send_message", { text: "It is time." }],
            ]
          : [
              ["set_plans", { plans: [{ id: "tea", name: "tea", instruction: "Say so", runAfter: "2 hours" }] }],
              ["send_message", { text: "I will." }],
            ],
      ),
    );
    const later = async () => vi.setSystemTime(Date.now() + 2 * 60 * 60_000 + 1000);
    return [says(space, husam, "Tell me in two hours"), { does: later }];
  },
};

const webhook: Scenario = {
  name: "webhook",
  open: async (stage) => {
    const { analyst, space } = await pair(stage, timeline);
    const { workspaceId } = stage;
    const version = ids.mint("key");
    const hookId = ids.deriveOwned("hook", analyst.id, version);
    const secret = "a secret of github's";
    const sealed = await seal(env, workspaceId, hookSecretName(hookId), secret);
    const hook = { id: hookId, scheme: "github", name: "github", sealed, version } as const;
    unwrap(await env.AGENT.getByName(analyst.id).createHook(workspaceId, hook));
    stage.play(
      scripted(() => [
        ["enter_space", { spaceId: space.id }],
        ["send_message", { text: "An issue was opened." }],
      ]),
    );
    const send = async (): Promise<void> => {
      const response = await deliver(hookId, signed.github(secret, "d-1", '{"action":"opened"}'));
      if (response.status === 202) return;
      const { code } = (await response.json()) as { code: string };
      if (response.status !== 503 || code !== "unavailable" || response.headers.get("retry-after") === null) {
        throw new Error(`a crash is answered by ${response.status} ${code}`, { cause: "final" });
      }
      throw new Error("the sender sends it again");
    };
    // Its sender sends everything twice; a delivery is one event all the same.
    return [{ does: send }, { does: send }];
  },
};

const paused: Scenario = {
  name: "paused",
  open: async (stage) => {
    const { husam, space } = await pair(stage, timeline);
    // With its jitter still less than a tick.
    const down = apiError(503, { responseHeaders: { "retry-after": "15" } });
    const failures = [
      refusal(down),
      step({ type: "begun", toolName: "send_message", deltas: ['{"text": "At'] }, errorPart(down)),
    ];
    stage.play(
      scriptedModel((options) => {
        const said = turnOf(options).given.length > 0;
        return said
          ? step(text("Done."))
          : (failures.shift() ?? step(call("send_message", { text: "At last." }, [12])));
      }),
    );
    return [says(space, husam, "Are you there?")];
  },
};

/** Its run holds the end of the redaction up, so that several goes are made of it. */
const deleted: Scenario = {
  name: "deleted under way",
  open: async (stage) => {
    const { husam, space } = await pair(stage);
    const gate = createGate();
    let reached = false;
    void gate.reached.then(() => {
      reached = true;
    });
    const isDeleted = async () => (await space.messages()).some((message) => message.deleted !== undefined);
    stage.play(
      scriptedModel((options) => {
        const { given } = turnOf(options);
        if (given.length > 0) return step(text("Done."));
        return step(waitAt(gate), call("set_memories", { memories: [{ key: "heard", value: "the quinces" }] }));
      }),
    );
    return [
      says(space, husam, "I like the quinces of the old orchard"),
      {
        when: async () => reached,
        does: async () => {
          const [first] = await space.messages();
          unwrap(await space.stub().deleteMessage(key(stage.workspaceId), first?.id ?? ""));
        },
        done: isDeleted,
      },
      { when: async () => (await isDeleted()) && passesOf("agent.mid-redaction") > 0, does: async () => gate.open() },
    ];
  },
};

const cancelled: Scenario = {
  name: "cancelled",
  open: async (stage) => {
    const { husam, analyst, space } = await pair(stage, timeline);
    let reached = false;
    const never = new Promise<void>(() => undefined);
    const reach = (): void => {
      reached = true;
    };
    const gate: Gate = { opened: never, reached: never, open: () => undefined, reach };
    stage.play(
      scriptedModel((options) => {
        const { heard, given } = turnOf(options);
        if (heard.includes("Never mind"))
          return given.length > 0 ? step(text("Done.")) : step(call("send_message", { text: "Fine." }));
        const begun: ScriptedPart = { type: "begun", toolName: "send_message", deltas: ['{"text": "All of'] };
        return step(begun, waitAt(gate));
      }),
    );
    const first = async () => (await runsOf(stage.workspaceId, analyst)).at(-1);
    const over = async () => (await first())?.status === "canceled";
    return [
      says(space, husam, "Tell me everything"),
      {
        when: async () => reached,
        does: async () => {
          reached = false;
          unwrap(await env.AGENT.getByName(analyst.id).cancelRun(stage.workspaceId, (await first())?.id ?? ""));
        },
        done: over,
      },
      says(space, husam, "Never mind"),
    ];
  },
};

const routed: Scenario = {
  name: "routed",
  open: async (stage) => {
    const [husam, sara] = [await stage.house.person("Husam"), await stage.house.person("Sara")];
    const analyst = await stage.agent({ name: "Analyst", ...timeline });
    const space = await stage.space("Alpha", [husam, sara, analyst]);
    const router = {
      model: { provider: "rehearsal", name: "router", deltasPerSecond: 0 },
      maxTokensPerDay: 200_000,
    } as const;
    unwrap(await space.stub().update(key(stage.workspaceId), { wakePolicy: "addressed", router }));
    stage.play(
      scripted(() => [["send_message", { text: "I can help." }]]),
      { router: scriptedModel(() => step(text('{"wake": ["Analyst"]}'))) },
    );
    return [says(space, husam, "Who can help?")];
  },
};

const renamed: Scenario = {
  name: "renamed",
  open: async (stage) => {
    const [sara, husam] = [await stage.house.person("Sara"), await stage.house.person("Husam")];
    const space = await stage.space("Alpha", [sara, husam, await stage.agent({ name: "Analyst", ...timeline })]);
    const workspace = () => env.WORKSPACE.getByName(stage.workspaceId);
    stage.play(scripted(({ heard }) => [["send_message", { text: heard.includes("Hossam") ? "Hossam!" : "Husam!" }]]));
    return [
      {
        does: async () => unwrap(await workspace().updateEntity(husam.id, { name: "Hossam" })),
        done: async () => unwrap(await workspace().entity(husam.id)).name === "Hossam",
      },
      {
        does: async () => unwrap(await workspace().putSecret("TOKEN", "sealed")),
        done: async () => unwrap(await workspace().secretNames()).includes("TOKEN"),
      },
      says(space, husam, "Who am I?"),
      {
        does: async () => unwrap(await workspace().removeEntity(husam.id)),
        done: async () => !(await workspace().entity(husam.id)).ok,
      },
    ];
  },
};

export const scenarios: Scenario[] = [
  singleReply,
  timelineReply,
  confidential,
  twoAgents,
  crossSpace,
  plan,
  webhook,
  paused,
  cancelled,
  deleted,
  routed,
  renamed,
  ...toolScenarios,
  ...followerScenarios,
  askingCycle,
];
