import fc from "fast-check";
import { expect, inject, test } from "vitest";
import { closeCodes } from "../../src/protocol/events.ts";
import { adminKey } from "../support/house.ts";
import { Findings, faultOfProblem, watchErrors } from "./findings.ts";
import { frame } from "./frames.ts";
import { FuzzedSocket } from "./fuzzed-socket.ts";
import { inputsOf } from "./plan.ts";
import { quietModel } from "./quiet-model.ts";
import { openStage } from "./stage.ts";
import { WatchedState } from "./watched-state.ts";

const inputsOnStage = 1500;
/** Of 200 frames in 10 s, half are there to see the end of the others. */
const inputsOnSocket = 90;

test("[S4] [B3] no frame makes a space fail, and none that is refused changes anything", async ({ task }) => {
  const { seed, inputs } = inject("fuzz");
  const findings = new Findings("frames", task.meta);
  const errors = watchErrors();
  quietModel();
  const all = inputsOf("frames", inputs);
  for (let from = 0; from < all; from += inputsOnStage) {
    const stage = await openStage(adminKey);
    const state = await WatchedState.of(stage);
    let socket = await FuzzedSocket.open(stage);
    let sent = 0;
    for (const one of fc.sample(frame, { seed: seed + from, numRuns: Math.min(inputsOnStage, all - from) })) {
      if (socket.closedBy !== undefined || sent >= inputsOnSocket) {
        socket.close();
        socket = await FuzzedSocket.open(stage);
        sent = 0;
      }
      await state.look();
      const answers = await socket.send(one);
      sent += 1;
      findings.inputs += 1;
      const refusals = answers.filter((answer) => answer.type === "error");
      if (refusals.length > 0) findings.refused += 1;
      else findings.taken += 1;
      for (const refusal of refusals) {
        const fault = faultOfProblem(refusal, refusal.status);
        if (fault !== undefined || refusal.status >= 500) findings.add(fault ?? `answered ${refusal.code}`, one);
      }
      for (const error of errors()) findings.add(`logged ${error.slice(0, 400)}`, one);
      for (const foreign of socket.foreign.splice(0)) findings.add(`sent what is no frame: ${foreign}`, one);
      const { closedBy } = socket;
      if (closedBy !== undefined && closedBy !== closeCodes.badFrames) findings.add(`closed with ${closedBy}`, one);
      const changed = refusals.length > 0 ? (await state.look()).filter((place) => place.startsWith("kitchen")) : [];
      if (changed.length > 0) findings.add(`refused and changed ${changed.join(", ")}`, one);
    }
    socket.close();
  }
  expect(findings.report()).toEqual([]);
  expect(findings.taken).toBeGreaterThan(findings.inputs / 20);
}, 3_600_000);
