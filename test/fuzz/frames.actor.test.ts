import fc from "fast-check";
import { afterAll, expect, inject, test, vi } from "vitest";
import { closeCodes } from "../../src/protocol/events.ts";
import { frameWindowMs } from "../../src/space/bounds.ts";
import { adminKey } from "../support/house.ts";
import { Findings, faultOfProblem, watchErrors } from "./findings.ts";
import { type FuzzedFrame, frame } from "./frames.ts";
import { FuzzedSocket } from "./fuzzed-socket.ts";
import { inputsOf } from "./plan.ts";
import { quietModel } from "./quiet-model.ts";
import { openStage, type Stage } from "./stage.ts";
import { StillStage } from "./still-stage.ts";

afterAll(() => {
  vi.useRealTimers();
});

const inputsOnStage = 1500;
/** Of 200 frames in 10 s, half are there to see the end of the others. */
const inputsOnSocket = 90;

/** Rights are proven again by an alarm. It follows the platform's clock, and not the one that is moved on here. */
const mayClose: (number | undefined)[] = [undefined, closeCodes.badFrames, closeCodes.tokenExpired];

/** A member's socket on each stage, opened anew before it has sent too much. */
class Sockets {
  #now: { stage: Stage; socket: FuzzedSocket; sent: number } | undefined;

  async of(stage: Stage): Promise<FuzzedSocket> {
    const now = this.#now;
    if (now?.stage === stage && now.socket.closedBy === undefined && now.sent < inputsOnSocket) return now.socket;
    now?.socket.close();
    // A member's sockets share one window: the next begins when it is over.
    if (now?.stage === stage) vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + frameWindowMs });
    this.#now = { stage, socket: await FuzzedSocket.open(stage), sent: 0 };
    return this.#now.socket;
  }

  /** What of the answers to a frame refuses it. */
  async refusals(stage: Stage, one: FuzzedFrame) {
    const socket = await this.of(stage);
    if (this.#now) this.#now.sent += 1;
    return (await socket.send(one)).filter((answer) => answer.type === "error");
  }
}

test("[S4] [B3] no frame makes a space fail, and none that is refused changes anything", async ({ task }) => {
  const { seed, inputs } = inject("fuzz");
  const findings = new Findings("frames", task.meta);
  const errors = watchErrors();
  quietModel();
  const all = inputsOf("frames", inputs);
  const [sockets, stillSockets] = [new Sockets(), new Sockets()];
  const still = new StillStage((quiet) => stillSockets.of(quiet));
  for (let from = 0; from < all; from += inputsOnStage) {
    const stage = await openStage(adminKey);
    for (const one of fc.sample(frame, { seed: seed + from, numRuns: Math.min(inputsOnStage, all - from) })) {
      const socket = await sockets.of(stage);
      const refusals = await sockets.refusals(stage, one);
      findings.inputs += 1;
      if (refusals.length > 0) findings.refused += 1;
      else findings.taken += 1;
      for (const refusal of refusals) {
        const fault = faultOfProblem(refusal, refusal.status);
        if (fault !== undefined || refusal.status >= 500) findings.add(fault ?? `answered ${refusal.code}`, one);
      }
      for (const error of errors()) findings.add(`logged ${error.slice(0, 400)}`, one);
      for (const foreign of socket.foreign.splice(0)) findings.add(`sent what is no frame: ${foreign}`, one);
      const { closedBy } = socket;
      if (!mayClose.includes(closedBy)) findings.add(`closed with ${closedBy}`, one);
      if (refusals.length === 0) continue;
      const changed = await still.changedBy(async (quiet) => (await stillSockets.refusals(quiet, one)).length > 0);
      if (changed.length > 0) findings.add(`refused and changed ${changed.join(", ")}`, one);
    }
  }
  expect(findings.report()).toEqual([]);
  expect(findings.taken).toBeGreaterThan(findings.inputs / 20);
  expect(still.compared).toBeGreaterThan(findings.refused / 2);
}, 3_600_000);
