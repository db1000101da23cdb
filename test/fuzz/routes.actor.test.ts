import { expect, inject, test } from "vitest";
import { loadLoro } from "../../src/agent/memory/documents/document.ts";
import { operations } from "../routes/operations.ts";
import { adminKey } from "../support/house.ts";
import { Findings, faultOfAnswer, isSuspended, watchErrors } from "./findings.ts";
import { inputsOf } from "./plan.ts";
import { quietModel } from "./quiet-model.ts";
import { type FuzzedRequest, oneOfEach, requestsOf } from "./requests.ts";
import { send } from "./send.ts";
import { openStage } from "./stage.ts";
import { isRefusal, StillStage } from "./still-stage.ts";
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

/** Refused for what came before it, which no other stage has seen: it is compared where it was refused. */
const isForItsPast = (status: number, text: string): boolean =>
  status === 409 || status === 429 || text.includes('"code":"idempotency_mismatch"');

test("[S4] [S6] no request to any route fails, and none that is refused changes anything", async ({ task }) => {
  const { seed, inputs } = inject("fuzz");
  const findings = new Findings("routes", task.meta);
  const errors = watchErrors();
  quietModel();
  // Vite hands it over when it is first asked for, which is no route's time.
  await loadLoro();
  const all = inputsOf("routes", inputs);
  const still = new StillStage();
  const sentTo = new Set<string>();
  for (let from = 0; from < all; from += inputsOnStage) {
    let stage = await openStage(adminKey);
    let state = await WatchedState.of(stage);
    const isLast = from + inputsOnStage >= all;
    const each = isLast ? oneOfEach(seed) : [];
    for (const sent of [...requestsOf(seed + from, Math.min(inputsOnStage, all - from)), ...each]) {
      await state.look();
      const begunAt = Date.now();
      const response = await send(sent, stage);
      if (!response) continue;
      findings.inputs += 1;
      sentTo.add(sent.operation);
      const text = await finish(response);
      const isRefused = response.status >= 400;
      if (isRefused) findings.refused += 1;
      else findings.taken += 1;
      const fault = faultOf(sent, response, text);
      if (fault !== undefined) findings.add(fault, sent, text.slice(0, 600));
      for (const error of errors()) findings.add(`${sent.operation} logged ${error.slice(0, 400)}`, sent);
      if (Date.now() - begunAt > slowMs) findings.add(`${sent.operation} took longer than ${slowMs} ms`, sent);
      if (isSuspended(text)) {
        stage = await openStage(adminKey);
        state = await WatchedState.of(stage);
        continue;
      }
      if (!isRefused) continue;
      const told = await state.look();
      const alone = (): Promise<string[]> => still.changedBy((quiet) => isRefusal(send(sent, quiet)));
      const changed = isForItsPast(response.status, text) && told.length === 0 ? [] : await alone();
      if (changed.length > 0)
        findings.add(`${sent.operation} was refused and changed ${changed.join(", ")}`, sent, text);
    }
  }
  expect(findings.report()).toEqual([]);
  expect(findings.taken).toBeGreaterThan(findings.inputs / 20);
  expect(still.compared).toBeGreaterThan(findings.refused / 2);
  // Webhook deliveries have a test of their own.
  expect(operations.filter(({ name }) => !sentTo.has(name)).map(({ name }) => name)).toEqual([
    "POST /v1/hooks/{hookId}",
  ]);
}, 3_600_000);
