import { env } from "cloudflare:workers";
import type { ClaimedRun } from "../../src/protocol/guest.ts";
import { type Outcome, unwrap } from "../../src/shared/errors.ts";
import { runsOf } from "../agent/fixture.ts";
import { type Scenario, says } from "./scenario.ts";
import { scripted } from "./scripts.ts";
import type { Stage } from "./stage.ts";

/** Those who follow from outside: a guest's program, an endpoint's server, and a person who looks. */

const mostTries = 20;

/** The program sends again what got no answer: the same key is the same act. */
const again = async <T>(ask: () => Promise<Outcome<T>>): Promise<T> => {
  for (let tries = 1; ; tries += 1) {
    const answer = await ask().catch((error: unknown) => {
      if (tries === mostTries) throw error;
    });
    if (answer && (answer.ok || answer.problem.code !== "unavailable" || tries === mostTries)) return unwrap(answer);
    await scheduler.wait(10);
  }
};

/** One run of the program, from its claim to its end. */
const runOfGuest = async (stage: Stage, id: string): Promise<void> => {
  const { workspaceId } = stage;
  const stub = () => env.AGENT.getByName(id);
  const claimed: ClaimedRun | null = unwrap(await stub().claimRun(workspaceId, { waitSeconds: 2 }));
  if (!claimed) throw new Error("no run came");
  const { run, lease } = claimed;
  const memories = { memories: [{ key: "asked", value: "yes" }] };
  const remember = { name: "set_memories", input: memories, key: "remember", lease };
  await again(() => stub().callInRun(workspaceId, run.id, remember));
  const words = ["Said ", "word ", "by ", "word."].map((delta) => ({ delta }));
  const lines = [...words, { done: true }].map((line) => `${JSON.stringify(line)}\n`).join("");
  await again(() => stub().speakInRun(workspaceId, run.id, { key: "speak", lease }, new Blob([lines]).stream()));
  const end = { kind: "complete", summary: "answered", lease } as const;
  await again(() => stub().endRun(workspaceId, run.id, end));
};

/** A claim whose answer is lost holds until its lease has run out. */
const leaseTicks = 3;

const guest: Scenario = {
  name: "guest",
  waits: { "guest.after-claim": leaseTicks, "agent.after-take": leaseTicks },
  open: async (stage) => {
    const husam = await stage.house.person("Husam");
    const courier = await stage.agent({ name: "Courier", runtime: "guest", continuity: "timeline" });
    const space = await stage.space("Alpha", [husam, courier]);
    stage.play(scripted(() => []));
    const isOver = async () => (await runsOf(stage.workspaceId, courier)).at(-1)?.status === "completed";
    return [says(space, husam, "Say it once"), { does: () => runOfGuest(stage, courier.id), done: isOver }];
  },
};

const followed: Scenario = {
  name: "endpoint and line",
  open: async (stage) => {
    const [husam, sara] = [await stage.house.person("Husam"), await stage.house.person("Sara")];
    const analyst = await stage.agent({ name: "Analyst", continuity: "timeline" });
    await stage.endpoint(["space.message", "run.*"]);
    const space = await stage.space("Alpha", [husam, sara, analyst]);
    stage.line(sara);
    stage.play(scripted(() => [["send_message", { text: "@Sara, Husam asks" }]]));
    return [says(space, husam, "Ask @Sara")];
  },
};

export const followerScenarios: Scenario[] = [guest, followed];
