import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../../src");
const actors = ["agent", "space", "workspace"] as const;

const filesIn = (folder: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => `${folder}/${name}`);
const read = (name: string): string => readFileSync(join(root, name), "utf8");

const boundsOf = (actor: string): string[] =>
  [...read(`${actor}/bounds.ts`).matchAll(/^export const (\w+) = /gm)].map(([, name = ""]) => name);

/** The messages that put a bound's number into words: `… at most ${maxThings} things …`. */
const sayingsOf = (source: string): { bound: string; message: string }[] =>
  [...source.matchAll(/(`|"(?=[^"\n]*\$))(?:[^`\\]|\\.)*?\1/g)].flatMap(([message]) =>
    [...message.matchAll(/\$\{(max[A-Z]\w*)\}/g)].map(([, bound = ""]) => ({ bound, message })),
  );

test("[B3] every bound is one named number in the one file of its actor, and is used", () => {
  for (const actor of actors) {
    const source = filesIn(actor)
      .filter((name) => name !== `${actor}/bounds.ts`)
      .map(read)
      .join("\n");
    for (const bound of boundsOf(actor)) expect(source, `${actor}: ${bound}`).toMatch(new RegExp(`\\b${bound}\\b`));
  }
});

/** What bounds a cache of estimates, a format or one quotation, where it is: nothing that is stored grows by them. */
const ofOneFile = [
  "agent/estimate-tokens.ts: maxKnownWords",
  "agent/estimate-tokens.ts: maxKnownLength",
  "agent/spaces.ts: maxKnownRows",
  "agent/tokens.ts: maxKnownCharacters",
  "agent/tools/check-config.ts: maxOutputBytes",
  "agent/tools/configured/read-answer.ts: maxDepth",
  "agent/tools/configured/template.ts: maxHeaders",
  "agent/tools/configured/template.ts: maxBodyTemplateBytes",
  "agent/tools/mcp/failure-of.ts: maxQuotedCharacters",
  "agent/tools/mcp/result-value.ts: maxBlocks",
  "agent/tools/mcp/tool-name.ts: maxCharacters",
  "space/router/answer.ts: maxPlaces",
  "workspace/outbox.ts: maxBackoffMs",
];

test("[B3] no actor keeps a bound of what may grow elsewhere", () => {
  const elsewhere = actors
    .flatMap(filesIn)
    .filter((name) => !name.endsWith("/bounds.ts"))
    .flatMap((name) =>
      [...read(name).matchAll(/^(?:export )?const (max\w+) = [\d_]/gm)].map(([, bound]) => `${name}: ${bound}`),
    );
  expect(elsewhere.toSorted()).toEqual(ofOneFile.toSorted());
});

test("[B3] an error that tells a bound's number names the bound", () => {
  const sayings = actors.flatMap(filesIn).flatMap((name) => sayingsOf(read(name)).map((each) => ({ ...each, name })));
  expect(sayings.length).toBeGreaterThan(30);
  const unnamed = sayings
    .filter(({ bound, message }) => !message.replaceAll(/\$\{[^}]*\}/g, "").includes(bound))
    .map(({ name, message }) => `${name}: ${message}`);
  expect(unnamed).toEqual([]);
});
