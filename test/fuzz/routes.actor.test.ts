import fc from "fast-check";
import { expect, inject, test } from "vitest";
import { operations } from "../routes/operations.ts";
import { adminKey } from "../support/house.ts";
import { Findings, faultOfAnswer, watchErrors } from "./findings.ts";
import { inputsOf } from "./plan.ts";
import { quietModel } from "./quiet-model.ts";
import { type FuzzedRequest, request } from "./requests.ts";
import { send } from "./send.ts";
import { openStage, type Stage } from "./stage.ts";
import { WatchedState } from "./watched-state.ts";

/** Inputs on one stage, before it is set up anew: what was taken changes what the next meet, but not for ever. */
const inputsOnStage = 1000;
const slowMs = 4000;

const documented = new Map(operations.map((operation) => [operation.name, Object.keys(operation.responses)]));

const finish = async (response: Response): Promise<string> => {
  if (response.webSocket) {
    response.webSocket.accept();
    response.webSocket.close();
    return "";
  }
  if (response.headers.get("content-type")?.startsWith("text/event-stream")) {
    await response.body?.cancel();
    return "";
  }
  return response.text();
};

/** What is wrong with an answer by itself. */
const faultOf = (sent: FuzzedRequest, response: Response, text: string): string | undefined => {
  const fault = faultOfAnswer(response, text);
  if (fault !== undefined) return `${sent.operation}: ${fault}`;
  const { status } = response;
  // A body where none is taken is looked at all the same, and an address may become another's.
  const isTold =
    documented.get(sent.operation)?.includes(String(status)) ||
    [404, 405].includes(status) ||
    (status === 400 && sent.body !== undefined);
  return isTold || status < 400
    ? undefined
    : `${sent.operation} answered ${status}, which its document does not tell of`;
};

/** Whether the refused request changes something on a stage on which nothing else happens. */
const changesWhenAlone = async (sent: FuzzedRequest): Promise<string[]> => {
  const stage = await openStage(adminKey);
  const state = await WatchedState.of(stage);
  const response = await send(sent, stage);
  if (!response || response.status < 400) return [];
  await finish(response);
  return state.look();
};

test("[S4] [S6] no request to any route fails, and none that is refused changes anything", async ({ task }) => {
  const { seed, inputs } = inject("fuzz");
  const findings = new Findings("routes", task.meta);
  const errors = watchErrors();
  quietModel();
  const all = inputsOf("routes", inputs);
  let stage: Stage | undefined;
  let state: WatchedState | undefined;
  for (let from = 0; from < all; from += inputsOnStage) {
    stage = await openStage(adminKey);
    state = await WatchedState.of(stage);
    for (const sent of fc.sample(request, { seed: seed + from, numRuns: Math.min(inputsOnStage, all - from) })) {
      await state.look();
      const begunAt = Date.now();
      const response = await send(sent, stage);
      if (!response) continue;
      findings.inputs += 1;
      const text = await finish(response);
      const isRefused = response.status >= 400;
      if (isRefused) findings.refused += 1;
      else findings.taken += 1;
      const fault = faultOf(sent, response, text);
      if (fault !== undefined) findings.add(fault, sent, text.slice(0, 600));
      for (const error of errors()) findings.add(`${sent.operation} logged ${error.slice(0, 400)}`, sent);
      if (Date.now() - begunAt > slowMs) findings.add(`${sent.operation} took longer than ${slowMs} ms`, sent);
      if (isRefused && (await state.look()).length > 0) {
        const changed = await changesWhenAlone(sent);
        if (changed.length > 0)
          findings.add(`${sent.operation} was refused and changed ${changed.join(", ")}`, sent, text);
      }
    }
  }
  expect(findings.report()).toEqual([]);
  expect(findings.taken).toBeGreaterThan(findings.inputs / 20);
}, 3_600_000);
