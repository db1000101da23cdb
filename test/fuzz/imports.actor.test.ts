import fc from "fast-check";
import { expect, inject, test } from "vitest";
import * as z from "zod";
import { exportMediaType } from "../../src/protocol/exported-agent.ts";
import { exported, linesOf, lived } from "../routes/transfer/lived.ts";
import { call, expectOk, openHouse } from "../support/house.ts";
import { Findings, faultOfAnswer, watchErrors } from "./findings.ts";
import { broken, type Json, mutated } from "./hostile.ts";
import { inputsOf } from "./plan.ts";
import { quietModel } from "./quiet-model.ts";

/**
 * Exported agents in which something is wrong. Each is refused in words and leaves nothing, or makes an agent that can
 * be asked for all that it is.
 */
const Lines = z.array(z.json());

/** Rows in another order: no order of them is the right one. */
const shuffled = ([head = null, ...rows]: Json[]): fc.Arbitrary<Json[]> =>
  fc.shuffledSubarray(rows, { minLength: rows.length }).map((order) => [head, ...order]);

/** Now and then another count, or none. */
const ended = (lines: string[], how: number): string => {
  const last = how === 0 ? [] : [JSON.stringify({ kind: "end", lines: lines.length + (how === 1 ? 1 : 0) })];
  return [...lines, ...last].join("\n");
};

const Created = z.object({ agent: z.object({ id: z.string() }) });
const Listed = z.object({ items: z.array(z.looseObject({ id: z.string().optional(), label: z.string().optional() })) });

test("[S4] a hostile import fails nothing and leaves no half agent", async ({ task }) => {
  const { seed, inputs } = inject("fuzz");
  const findings = new Findings("imports", task.meta);
  const before = await lived();
  const document = await exported(before.house, before.id);
  const lines = Lines.parse(JSON.parse(JSON.stringify(linesOf(document))));
  const version1 = z.json().parse(JSON.parse(JSON.stringify({ ...document, version: 1 })));
  const house = await openHouse("Elsewhere");
  const bearer = house.secretKey;
  const errors = watchErrors();
  quietModel();
  const valid = shuffled(lines);
  const textsOf = (value: Json): string[] =>
    (Array.isArray(value) ? value : [value]).map((line) => JSON.stringify(line));
  const withBrokenLine = fc
    .tuple(valid, fc.nat(lines.length - 1))
    .chain(([all, at]) => broken(fc.constant(all[at] ?? null)).map((line) => ended(textsOf(all).with(at, line), 2)));
  const arbitrary = fc.oneof(
    {
      weight: 5,
      arbitrary: fc.tuple(mutated(valid), fc.nat(20)).map(([all, how]) => ({ text: ended(textsOf(all), how) })),
    },
    { weight: 1, arbitrary: withBrokenLine.map((text) => ({ text })) },
    { weight: 1, arbitrary: valid.map((all) => ({ text: ended(textsOf(all), 2) })) },
    {
      weight: 1,
      arbitrary: mutated(fc.constant(version1)).map((value) => ({
        text: JSON.stringify(value),
        type: "application/json",
      })),
    },
  );

  /** Asks for something of an agent that was taken; answers what came. */
  const ask = async (path: string, input: string, body?: unknown): Promise<string> => {
    const response = await call(path, { bearer, ...(body === undefined ? {} : { body }) });
    const text = await response.text();
    const fault = faultOfAnswer(response, text);
    if (fault !== undefined)
      findings.add(`${path.replaceAll(/ent_\w+|run_\w+/g, "…")}: ${fault}`, input, text.slice(0, 600));
    return text;
  };
  const lookAt = async (id: string, input: string): Promise<void> => {
    const path = `/v1/agents/${id}`;
    for (const part of [
      ...["", "/context", "/memories", "/goals", "/plans", "/archival", "/search?q=tea+Friday", "/export"],
    ]) {
      await ask(path + part, input);
    }
    for (const { id: runId } of Listed.parse(JSON.parse(await ask(`${path}/runs`, input))).items) {
      await ask(`${path}/runs/${runId}`, input);
    }
    for (const { label } of Listed.parse(JSON.parse(await ask(`${path}/blocks`, input))).items) {
      const block = `${path}/blocks/${label}`;
      await ask(`${block}/history`, input);
      for (const version of [1, 2, 3]) await ask(`${block}?version=${version}`, input);
      await ask(`${block}/operations`, input, { operations: [{ op: "undo" }] });
    }
    await ask(`${path}/trigger`, input, { serviceName: "test", payload: "Still there?" });
    await ask(`${path}/context`, input);
  };

  for (const { text: input, type = exportMediaType } of fc.sample<{ text: string; type?: string }>(arbitrary, {
    seed,
    numRuns: inputsOf("imports", inputs),
  })) {
    findings.inputs += 1;
    const response = await call("/v1/imports", { bearer, body: input, headers: { "content-type": type } });
    const text = await response.text();
    const fault = faultOfAnswer(response, text);
    if (fault !== undefined) findings.add(fault, input, text.slice(0, 600));
    if (response.ok) {
      findings.taken += 1;
      const { id } = Created.parse(JSON.parse(text)).agent;
      await lookAt(id, input);
      await call(`/v1/agents/${id}`, { method: "DELETE", bearer });
    } else findings.refused += 1;
    const { items } = await expectOk(Listed, call("/v1/agents", { bearer }));
    if (items.length > 0) findings.add("an agent that was refused is there", input, text);
    for (const error of errors()) findings.add(`logged ${error.slice(0, 400)}`, input);
  }
  expect(findings.report()).toEqual([]);
  expect(findings.taken).toBeGreaterThan(findings.inputs / 20);
  expect(findings.refused).toBeGreaterThan(findings.inputs / 3);
}, 3_600_000);
