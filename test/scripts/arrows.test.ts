import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, parse, relative, resolve } from "node:path";
import { afterAll, describe, expect, it } from "vitest";

/** What the rooms of `src` may import of each other. The linter refuses every other pair. */
const rooms: Record<string, string[]> = {
  protocol: [],
  shared: [],
  env: ["protocol", "shared"],
  timers: ["shared"],
  sockets: ["protocol", "shared", "timers"],
  auth: ["env", "protocol", "shared"],
  models: ["env", "protocol", "shared"],
  rehearsal: ["models", "shared"],
  "mcp-server": ["protocol", "shared"],
  routes: ["auth", "env", "mcp-server", "protocol", "shared"],
  workspace: ["env", "protocol", "shared", "timers"],
  endpoint: ["env", "protocol", "shared", "timers"],
  space: ["env", "protocol", "shared", "sockets", "timers"],
  agent: ["auth", "env", "models", "protocol", "shared", "sockets", "timers"],
  client: ["protocol"],
  web: ["client"],
};

/** The same for the rooms of `src/agent`, of which most may import all that follow. */
const below = ["run", "inbox", "calls", "tools", "tracing", "context", "memory", "plans", "redaction"];
const agentRooms: Record<string, string[]> = {
  api: ["summaries", "transfer", ...below],
  ...{ summaries: below, transfer: below, run: below.slice(1), inbox: below.slice(2), calls: below.slice(3) },
  ...{ tools: ["memory"], tracing: ["context"], context: [], memory: ["redaction"], plans: [], redaction: [] },
};

const pairsOf = (folder: string, may: Record<string, string[]>) =>
  Object.keys(may).flatMap((room) =>
    Object.keys(may)
      .filter((other) => other !== room)
      .map((other): [string, string, boolean] => [
        `${folder}/${room}/file.ts`,
        `../${other}/file.ts`,
        may[room]?.includes(other) === true,
      ]),
  );

const wrong: [string, string][] = [
  ["src/web/timeline/list.tsx", "../../shared/clock.ts"],
  ["src/client/client.ts", "node:fs"],
  ["src/protocol/message.ts", "hono"],
  ["src/shared/ids.ts", "cloudflare:workers"],
  ["src/timers/timers.ts", "cloudflare:workers"],
  ["src/sockets/sockets.ts", "cloudflare:workers"],
  ["src/rehearsal/decide.ts", "../agent/context/compose.ts"],
  ["src/rehearsal/route.ts", "../space/router/router.ts"],
  ["src/rehearsal/decide.ts", "../worker.ts"],
  ["src/rehearsal/rules/say.ts", "../../agent/context/compose.ts"],
  ["src/rehearsal/rules/say.ts", "cloudflare:workers"],
  ["src/space/router/router.ts", "../../agent/agent.ts"],
  ["src/space/router/router.ts", "../../workspace/workspace.ts"],
  ...Object.keys(agentRooms).flatMap((room): [string, string][] => [
    [`src/agent/${room}/one.ts`, "../agent.ts"],
    [`src/agent/${room}/one.ts`, "../runtime.ts"],
    [`src/agent/${room}/one.ts`, "../../space/channel.ts"],
    [`src/agent/${room}/one.ts`, "../../workspace/follow.ts"],
    [`src/agent/${room}/one.ts`, "../../rehearsal/decide.ts"],
  ]),
  ["src/agent/journal.ts", "./run/run-loop.ts"],
  ["src/agent/records.ts", "./context/sections.ts"],
  ["src/agent/tokens.ts", "./context/sections.ts"],
  ["src/agent/identity.ts", "./runtime.ts"],
  ["src/agent/run/continuity/timeline.ts", "../../api/runs.ts"],
  ["src/agent/tools/builtin/runs.ts", "../../run/run-loop.ts"],
  ["src/agent/context/compose.ts", "drizzle-orm"],
  ["src/agent/context/compose.ts", "cloudflare:workers"],
  ["src/agent/context/compose.ts", "../../shared/database.ts"],
  ["src/agent/context/compose.ts", "node:fs"],
  ["src/agent/context/timeline/history.ts", "../consciousness/state.ts"],
  ["src/agent/context/timeline/history.ts", "../compose.ts"],
  ["src/agent/context/timeline/history.ts", "../../runs.ts"],
  ["src/agent/context/timeline/history.ts", "../../../shared/database.ts"],
  ["src/agent/memory/blocks/shares.ts", "../../calls/calls.ts"],
  ["src/agent/memory/goals.ts", "cloudflare:workers"],
  ["src/agent/memory/goals.ts", "../../models/ask-model.ts"],
];

const right: [string, string][] = [
  ["src/protocol/rpc.ts", "../shared/errors.ts"],
  ["src/client/client.ts", "../shared/errors.ts"],
  ["src/worker.ts", "./rehearsal/rehearsal-model.ts"],
  ["src/rehearsal/parse-prompt.ts", "../agent/context/grammar.ts"],
  ["src/rehearsal/route.ts", "../space/router/prompt.ts"],
  ["src/rehearsal/rules/say.ts", "../turn.ts"],
  ["src/space/router/router.ts", "../../models/models.ts"],
  ["src/space/router/router.ts", "../../auth/sealing.ts"],
  ["src/agent/api/runs.ts", "../run/run-services.ts"],
  ["src/agent/run/step.ts", "../../protocol/agent.ts"],
  ["src/agent/context/compose.ts", "../../protocol/agent.ts"],
  ["src/agent/context/compose.ts", "./timeline/compose-timeline.ts"],
  ["src/agent/context/grammar.ts", "../../shared/line-form.ts"],
  ["src/agent/context/timeline/history.ts", "../../tokens.ts"],
  ["src/agent/memory/goals.ts", "drizzle-orm"],
  ["src/agent/memory/goals.ts", "../../protocol/agent.ts"],
  ["src/agent/memory/search/embedding.ts", "../../../models/embedders/embedder.ts"],
];

/** Where import number `index` is planted: beside the file it is named after, or in that file where a rule names it. */
const place = (file: string, index: number): string => {
  const { dir, ext, name } = parse(file);
  return ["agent", "space", "workspace", "journal", "records", "tokens", "identity"].includes(name)
    ? file
    : join(dir, `case-${index}${ext}`);
};

/** A tree that holds nothing but the house's own configuration and these imports. */
const plant = (imports: [string, string][]): string => {
  const tree = realpathSync(mkdtempSync(join(tmpdir(), "arrows-")));
  trees.push(tree);
  for (const name of ["biome.json", ".gitignore"]) cpSync(name, join(tree, name));
  for (const [file, specifier] of imports) {
    mkdirSync(dirname(join(tree, file)), { recursive: true });
    writeFileSync(join(tree, file), `import { x } from "${specifier}";\nexport const y = x;\n`);
  }
  return tree;
};

/** The files of a tree that one rule of the linter refuses. */
const refusedIn = (tree: string, rule: string): Set<string> => {
  const biome = resolve("node_modules/.bin/biome");
  const options = ["lint", `--only=${rule}`, "--max-diagnostics=none", "--reporter=github"];
  const { stdout } = spawnSync(biome, options, { cwd: tree, encoding: "utf8" });
  return new Set([...stdout.matchAll(/file=([^,]+),/g)].map((match) => relative(tree, match[1] ?? "")));
};

const trees: string[] = [];
afterAll(() => {
  for (const tree of trees) rmSync(tree, { recursive: true });
});

describe("the arrows between the folders", () => {
  const cases = [
    ...pairsOf("src", rooms),
    ...pairsOf("src/agent", agentRooms),
    ...wrong.map(([file, specifier]): [string, string, boolean] => [file, specifier, false]),
    ...right.map(([file, specifier]): [string, string, boolean] => [file, specifier, true]),
  ].map(([file, specifier, isLet], index) => ({ file, specifier, isLet, at: place(file, index) }));
  const refused = refusedIn(plant(cases.map(({ at, specifier }) => [at, specifier])), "style/noRestrictedImports");

  it.each(cases.filter(({ isLet }) => !isLet))("$file may not import $specifier", ({ at }) => {
    expect(refused).toContain(at);
  });

  it.each(cases.filter(({ isLet }) => isLet))("$file may import $specifier", ({ at }) => {
    expect(refused).not.toContain(at);
  });
});

it("the linter refuses files that import each other in a circle", () => {
  const tree = plant([
    ["src/space/log.ts", "./members.ts"],
    ["src/space/members.ts", "./log.ts"],
    ["src/space/wake.ts", "./log.ts"],
  ]);
  expect(refusedIn(tree, "suspicious/noImportCycles")).toEqual(new Set(["src/space/log.ts", "src/space/members.ts"]));
});
