import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../../src");
const actors = ["agent", "person", "space", "workspace", "endpoint"] as const;

const filesIn = (folder: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => `${folder}/${name}`);
const read = (name: string): string => readFileSync(join(root, name), "utf8");

const boundsOf = (actor: string): string[] =>
  [...read(`${actor}/bounds.ts`).matchAll(/^export const (\w+) = /gm)].map(([, name = ""]) => name);

/** The messages that put a bound's number into words: `… at most ${maxThings} things …`. A query is none. */
const sayingsOf = (source: string): { bound: string; message: string }[] =>
  [...source.matchAll(/(\bsql)?(`|"(?=[^"\n]*\$))(?:[^`\\]|\\.)*?\2/g)].flatMap(([message, isQuery]) =>
    isQuery ? [] : [...message.matchAll(/\$\{(max[A-Z]\w*)\}/g)].map(([, bound = ""]) => ({ bound, message })),
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

/** Bounds that stand where they are used. Nothing that is stored grows by them. */
const ofOneFile = [
  "agent/memory/documents/text-changes.ts: maxLineEdits",
  "agent/memory/documents/text-changes.ts: maxSplices",
  "agent/memory/documents/text-changes.ts: maxWordEdits",
  "agent/memory/search/match-expression.ts: maxQueryTerms",
  "agent/ledger.ts: maxHeldRows",
  "agent/ledger.ts: maxWithin",
  "agent/runs.ts: maxKnownPersons",
  "agent/spaces.ts: maxKnownRows",
  "agent/tools/builtin/blocks.ts: maxEcho",
  "agent/tokens.ts: maxKnownCharacters",
  "agent/tools/check-config.ts: maxOutputBytes",
  "agent/tools/configured/server-answer.ts: maxDepth",
  "agent/tools/configured/request-template.ts: maxHeaders",
  "agent/tools/configured/redact.ts: maxRedactedCharacters",
  "agent/tools/configured/redact.ts: maxRedactionSteps",
  "agent/tools/configured/redact.ts: maxRounds",
  "agent/tools/configured/request-template.ts: maxBodyTemplateBytes",
  "agent/tools/mcp/failure-of.ts: maxQuotedCharacters",
  "agent/tools/mcp/result-value.ts: maxBlocks",
  "agent/tools/mcp/tool-list.ts: maxCharacters",
  "space/router/prompt.ts: maxObjects",
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

/** The bounds that B3 names, where each is, the code that it is answered with, and the test that reaches it. */
const reached: [what: string, bound: string, file: string, code: string, test: string][] = [
  ["steps a run", "maxSteps", "protocol/agent.ts", "step_limit", "agent/failures.actor.test.ts"],
  ["tokens a run", "maxTokensPerRun", "protocol/agent.ts", "token_limit", "agent/run-limits.actor.test.ts"],
  ["minutes a run", "maxRunMinutes", "protocol/agent.ts", "time_limit", "agent/run-limits.actor.test.ts"],
  ["tokens a day", "maxTokensPerDay", "protocol/agent.ts", "budget_exhausted", "agent/failures.actor.test.ts"],
  ["runs in an hour", "maxRunsPerHour", "protocol/agent.ts", "rate_limited", "agent/runs-per-hour.actor.test.ts"],
  ["a person's tokens", "maxShareOfPerson", "protocol/agent.ts", "budget_exhausted", "agent/shares.actor.test.ts"],
  ["events held", "maxHeldEvents", "agent/bounds.ts", "(it is heard)", "agent/shares.actor.test.ts"],
  [
    "events held for a person",
    "maxHeldEventsOfPerson",
    "agent/bounds.ts",
    "(it is heard)",
    "agent/hour-shares.actor.test.ts",
  ],
  [
    "a person's followed blocks",
    "maxSubscribersPerPerson",
    "agent/bounds.ts",
    "unavailable",
    "routes/per-person.actor.test.ts",
  ],
  ["a person's sockets", "maxSocketsPerPerson", "space/bounds.ts", "unavailable", "routes/per-person.actor.test.ts"],
  [
    "a person's spaces in a day",
    "maxSpacesOfPersonPerDay",
    "workspace/bounds.ts",
    "limit_reached",
    "routes/per-person.actor.test.ts",
  ],
  ["a person's spaces", "maxSpacesOfPerson", "workspace/bounds.ts", "limit_reached", "routes/per-person.actor.test.ts"],
  ["runs at a time", "maxConcurrentRuns", "protocol/agent.ts", "(it waits)", "agent/run-limits.actor.test.ts"],
  ["runs that wait", "maxWaitingRuns", "agent/bounds.ts", "limit_reached", "agent/awaited-answers.actor.test.ts"],
  ["wakes by one root", "maxWakesPerRoot", "protocol/agent.ts", "(it is not woken)", "agent/loops/loops.actor.test.ts"],
  ["calls of a step", "maxCallsPerStep", "agent/bounds.ts", "model_nonsense", "agent/run-limits.actor.test.ts"],
  ["what a step says", "maxStepBytes", "agent/bounds.ts", "model_nonsense", "agent/models.actor.test.ts"],
  ["nonsense in a row", "maxInvalidSteps", "agent/bounds.ts", "model_nonsense", "agent/run-limits.actor.test.ts"],
  ["inbox", "maxInboxEvents", "agent/bounds.ts", "unavailable", "routes/hooks.actor.test.ts"],
  [
    "dead events",
    "maxDeadLetters",
    "agent/bounds.ts",
    "(those that died first go)",
    "agent/dead-letters.actor.test.ts",
  ],
  ["a service's payload", "maxPayloadBytes", "agent/bounds.ts", "payload_too_large", "routes/hooks.actor.test.ts"],
  ["a message", "maxTextBytes", "protocol/text.ts", "text_too_long", "protocol/text.test.ts"],
  ["tool output", "maxToolOutputBytes", "agent/bounds.ts", "(a note)", "agent/calls/long.actor.test.ts"],
  ["plans", "maxPlans", "agent/bounds.ts", "limit_reached", "agent/plans/plans.actor.test.ts"],
  ["memories", "maxMemories", "agent/bounds.ts", "limit_reached", "agent/run-limits.actor.test.ts"],
  ["goals", "maxGoals", "agent/bounds.ts", "limit_reached", "agent/run-limits.actor.test.ts"],
  ["hooks", "maxHooks", "agent/bounds.ts", "limit_reached", "routes/hooks.actor.test.ts"],
  ["stored events", "maxDatabaseBytes", "space/bounds.ts", "limit_reached", "space/tool-calls.actor.test.ts"],
  ["bytes of an agent", "maxAgentBytes", "agent/bounds.ts", "limit_reached", "routes/storage.actor.test.ts"],
  ["sockets", "maxSockets", "space/bounds.ts", "unavailable", "space/sockets.test.ts"],
  ["sockets of a member", "maxSocketsPerMember", "space/bounds.ts", "unavailable", "space/sockets.test.ts"],
  ["frames of a socket", "maxFrames", "space/bounds.ts", "close 4429", "space/sockets.actor.test.ts"],
  ["frames of a member", "maxMemberFrames", "space/bounds.ts", "close 4429", "space/sockets.actor.test.ts"],
  ["bad frames of a socket", "maxBadFrames", "space/bounds.ts", "close 4400", "space/sockets.actor.test.ts"],
  ["spaces on a line", "maxSubscriptions", "protocol/line.ts", "limit_reached", "routes/line.actor.test.ts"],
  ["open tool calls", "maxOpenToolCalls", "space/bounds.ts", "limit_reached", "space/tool-calls.actor.test.ts"],
  ["held for the router", "maxRouterHeld", "space/bounds.ts", "limit_reached", "space/router.actor.test.ts"],
  ["a caller's repeats", "maxRequests", "workspace/bounds.ts", "limit_reached", "workspace/requests.actor.test.ts"],
  ["agents", "maxAgents", "workspace/bounds.ts", "limit_reached", "workspace/workspace.actor.test.ts"],
  ["spaces", "maxSpaces", "workspace/bounds.ts", "limit_reached", "workspace/space-index.actor.test.ts"],
  ["endpoints", "maxEndpoints", "workspace/bounds.ts", "limit_reached", "endpoint/endpoints.actor.test.ts"],
  ["keys", "maxKeys", "workspace/bounds.ts", "limit_reached", "workspace/workspace.actor.test.ts"],
  ["secrets", "maxSecrets", "workspace/bounds.ts", "limit_reached", "workspace/workspace.actor.test.ts"],
  ["sign-in links", "maxSignInCodes", "workspace/bounds.ts", "limit_reached", "routes/sessions.actor.test.ts"],
  [
    "patterns of a request",
    "maxPatternSteps",
    "shared/check-budget.ts",
    "invalid_request",
    "shared/json-schema.test.ts",
  ],
  ["steps of a request", "maxSchemaSteps", "shared/check-budget.ts", "invalid_request", "shared/json-schema.test.ts"],
  [
    "patterns of an agent's tools",
    "maxRequestPatternSizes",
    "shared/check-budget.ts",
    "invalid_request",
    "agent/tools/check-config.test.ts",
  ],
  [
    "places that one edit of a block changes",
    "maxEditSplices",
    "shared/check-budget.ts",
    "edit_refused",
    "agent/memory/documents/operations.test.ts",
  ],
];

const row = (...cells: string[]): string => `| ${cells.join(" | ")} |`;

/** Every bound of an actor with its value, under what its file says of it. */
const tableOf = async (actor: string): Promise<string[]> => {
  const values: Record<string, unknown> = await import(`../../src/${actor}/bounds.ts`);
  const lines = read(`${actor}/bounds.ts`).matchAll(/^\/\*\* ([^\n]*) \*\/$|^export const (\w+) = /gm);
  let says = "";
  return [...lines].flatMap(([, comment, bound]) => {
    if (bound === undefined) {
      says = comment ?? "";
      return [];
    }
    const told = row(`\`${bound}\``, Number(values[bound]).toLocaleString("en"), says);
    says = "";
    return [told];
  });
};

test("[B3] docs/bounds.md lists every bound, and the tests that reach those of B3", async () => {
  for (const [what, bound, file, , where] of reached) {
    expect(read(file), what).toMatch(new RegExp(`\\b${bound}\\b`));
    const tested = readFileSync(join(root, "../test", where), "utf8");
    expect(tested, `${what}: ${where}`).toContain(bound);
  }
  const sections = await Promise.all(
    actors.map(async (actor) => [
      `## ${actor[0]?.toUpperCase()}${actor.slice(1)}: \`src/${actor}/bounds.ts\``,
      "",
      row("bound", "value", "of what (of the one above where nothing is said)"),
      row("---", "---:", "---"),
      ...(await tableOf(actor)),
      "",
    ]),
  );
  const doc = [
    "# Bounds",
    "",
    "Whatever could grow is bounded by a named number (B3). Written by `npx vitest run --project pure test/shared/bounds -u`,",
    "whose test compares it with the code. Those of `src/protocol/agent.ts` are an agent's own [limits](configuration.md).",
    "",
    "## Who meets them",
    "",
    row("what", "bound", "where", "answered with", "reached by"),
    row("---", "---", "---", "---", "---"),
    ...reached.map(([what, bound, file, code, where]) =>
      row(what, `\`${bound}\``, `\`src/${file}\``, code, `\`test/${where}\``),
    ),
    "",
    ...sections.flat(),
  ];
  await expect(`${doc.join("\n").trimEnd()}\n`).toMatchFileSnapshot("../../docs/bounds.md");
});
