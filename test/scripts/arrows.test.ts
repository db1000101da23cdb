import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, parse, relative, resolve } from "node:path";
import { afterAll, describe, expect, it } from "vitest";

const wrong: [string, string][] = [
  ["src/web/app.tsx", "../protocol/message.ts"],
  ["src/web/timeline/list.tsx", "../../shared/clock.ts"],
  ["src/client/client.ts", "../space/space.ts"],
  ["src/client/client.ts", "../shared/clock.ts"],
  ["src/client/client.ts", "../web/app.tsx"],
  ["src/client/react.ts", "../agent/agent.ts"],
  ["src/protocol/message.ts", "../shared/ids.ts"],
  ["src/protocol/message.ts", "../space/space.ts"],
  ["src/protocol/message.ts", "hono"],
  ["src/shared/ids.ts", "../space/log.ts"],
  ["src/shared/ids.ts", "cloudflare:workers"],
  ["src/timers/timers.ts", "../agent/agent.ts"],
  ["src/timers/timers.ts", "cloudflare:workers"],
  ["src/auth/tokens.ts", "../workspace/workspace.ts"],
  ["src/models/models.ts", "../agent/agent.ts"],
  ["src/models/models.ts", "../rehearsal/rehearsal-model.ts"],
  ["src/rehearsal/decide.ts", "../agent/agent.ts"],
  ["src/rehearsal/decide.ts", "../agent/context/compose.ts"],
  ["src/rehearsal/decide.ts", "../space/space.ts"],
  ["src/rehearsal/route.ts", "../space/router/router.ts"],
  ["src/rehearsal/decide.ts", "../workspace/workspace.ts"],
  ["src/rehearsal/decide.ts", "../routes/app.ts"],
  ["src/rehearsal/decide.ts", "../protocol/message.ts"],
  ["src/rehearsal/decide.ts", "../worker.ts"],
  ["src/rehearsal/rules/say.ts", "../../agent/context/compose.ts"],
  ["src/rehearsal/rules/say.ts", "cloudflare:workers"],
  ["src/shared/ids.ts", "../rehearsal/decide.ts"],
  ["src/timers/timers.ts", "../rehearsal/decide.ts"],
  ["src/auth/tokens.ts", "../rehearsal/decide.ts"],
  ["src/routes/spaces.ts", "../rehearsal/rehearsal-model.ts"],
  ["src/workspace/follow.ts", "../rehearsal/decide.ts"],
  ["src/space/delivery.ts", "../rehearsal/decide.ts"],
  ["src/space/router/router.ts", "../../rehearsal/route.ts"],
  ["src/agent/inbox.ts", "../rehearsal/rehearsal-model.ts"],
  ["src/agent/run/run.ts", "../../rehearsal/rehearsal-model.ts"],
  ["src/agent/tools/registry.ts", "../../rehearsal/decide.ts"],
  ["src/agent/memory/goals.ts", "../../rehearsal/decide.ts"],
  ["src/client/client.ts", "../rehearsal/decide.ts"],
  ["src/web/app.tsx", "../rehearsal/decide.ts"],
  ["src/routes/spaces.ts", "../space/space.ts"],
  ["src/routes/spaces.ts", "../workspace/schema.ts"],
  ["src/routes/agents.ts", "../agent/memory/goals.ts"],
  ["src/space/delivery.ts", "../agent/agent.ts"],
  ["src/space/delivery.ts", "../workspace/workspace.ts"],
  ["src/space/delivery.ts", "../models/models.ts"],
  ["src/space/posting.ts", "../auth/sealing.ts"],
  ["src/space/router/router.ts", "../../agent/agent.ts"],
  ["src/space/router/router.ts", "../../workspace/workspace.ts"],
  ["src/agent/runtime.ts", "../workspace/workspace.ts"],
  ["src/agent/journal.ts", "./run/run-loop.ts"],
  ["src/agent/records.ts", "./context/sections.ts"],
  ["src/agent/identity.ts", "./runtime.ts"],
  ["src/agent/api/blocks.ts", "../agent.ts"],
  ["src/agent/api/blocks.ts", "../runtime.ts"],
  ["src/agent/summaries/summary-work.ts", "../api/runs.ts"],
  ["src/agent/transfer/check-import.ts", "../api/runs.ts"],
  ["src/agent/run/step.ts", "../agent.ts"],
  ["src/agent/run/step.ts", "../../space/channel.ts"],
  ["src/agent/run/step.ts", "../api/runs.ts"],
  ["src/agent/run/step.ts", "../summaries/summary-work.ts"],
  ["src/agent/run/step.ts", "../transfer/kinds.ts"],
  ["src/agent/run/continuity/timeline.ts", "../../api/runs.ts"],
  ["src/agent/inbox/deliver.ts", "../run/run-loop.ts"],
  ["src/agent/inbox/deliver.ts", "../api/inbox.ts"],
  ["src/agent/calls/call-work.ts", "../inbox/deliver.ts"],
  ["src/agent/calls/call-work.ts", "../run/execute.ts"],
  ["src/agent/tracing/tracer.ts", "../run/step.ts"],
  ["src/agent/tracing/tracer.ts", "../memory/goals.ts"],
  ["src/agent/tools/registry.ts", "../run/run-loop.ts"],
  ["src/agent/tools/registry.ts", "../calls/calls.ts"],
  ["src/agent/tools/builtin/runs.ts", "../../run/run-loop.ts"],
  ["src/agent/tools/registry.ts", "../agent.ts"],
  ["src/agent/context/compose.ts", "drizzle-orm"],
  ["src/agent/context/compose.ts", "cloudflare:workers"],
  ["src/agent/context/compose.ts", "../../shared/database.ts"],
  ["src/agent/context/compose.ts", "../../models/models.ts"],
  ["src/agent/context/compose.ts", "../run/run-loop.ts"],
  ["src/agent/context/compose.ts", "../agent.ts"],
  ["src/agent/context/compose.ts", "node:fs"],
  ["src/agent/context/timeline/history.ts", "../consciousness/state.ts"],
  ["src/agent/context/timeline/history.ts", "../compose.ts"],
  ["src/agent/context/timeline/history.ts", "../../runs.ts"],
  ["src/agent/context/timeline/history.ts", "../../../shared/database.ts"],
  ["src/agent/memory/goals.ts", "../agent.ts"],
  ["src/agent/memory/goals.ts", "../run/run-loop.ts"],
  ["src/agent/memory/blocks/shares.ts", "../../calls/calls.ts"],
  ["src/agent/memory/search/search.ts", "../../context/tokens.ts"],
  ["src/agent/memory/goals.ts", "cloudflare:workers"],
  ["src/agent/plans/due.ts", "../tools/registry.ts"],
  ["src/agent/plans/due.ts", "../run/run-services.ts"],
  ["src/workspace/follow.ts", "../space/space.ts"],
];

const right: [string, string][] = [
  ["src/web/app.tsx", "../client/client.ts"],
  ["src/client/client.ts", "../protocol/message.ts"],
  ["src/client/react.ts", "./client.ts"],
  ["src/protocol/rpc.ts", "../shared/errors.ts"],
  ["src/protocol/rpc.ts", "./space.ts"],
  ["src/routes/spaces.ts", "../protocol/space.ts"],
  ["src/worker.ts", "./rehearsal/rehearsal-model.ts"],
  ["src/rehearsal/decide.ts", "./turn.ts"],
  ["src/rehearsal/decide.ts", "../models/language-model.ts"],
  ["src/rehearsal/parse-prompt.ts", "../agent/context/grammar.ts"],
  ["src/rehearsal/route.ts", "../space/router/prompt.ts"],
  ["src/rehearsal/rules/say.ts", "../turn.ts"],
  ["src/rehearsal/rules/say.ts", "zod"],
  ["src/space/space.ts", "../protocol/agent.ts"],
  ["src/space/space.ts", "../timers/timers.ts"],
  ["src/space/router/router.ts", "../../models/models.ts"],
  ["src/space/router/router.ts", "../../auth/sealing.ts"],
  ["src/agent/agent.ts", "./api/runs.ts"],
  ["src/agent/runtime.ts", "./run/loop.ts"],
  ["src/agent/api/runs.ts", "../run/run-services.ts"],
  ["src/agent/run/step.ts", "../../protocol/agent.ts"],
  ["src/agent/run/step.ts", "../context/compose.ts"],
  ["src/agent/run/step.ts", "../inbox/inbox.ts"],
  ["src/agent/inbox/deliver.ts", "../calls/calls.ts"],
  ["src/agent/calls/calls.ts", "../runs.ts"],
  ["src/agent/context/sections.ts", "../records.ts"],
  ["src/agent/context/compose.ts", "../../protocol/agent.ts"],
  ["src/agent/context/compose.ts", "ai"],
  ["src/agent/context/compose.ts", "./timeline/compose-timeline.ts"],
  ["src/agent/context/wording.ts", "../../shared/quote.ts"],
  ["src/agent/context/grammar.ts", "../../shared/line-form.ts"],
  ["src/agent/context/timeline/history.ts", "../wording.ts"],
  ["src/agent/context/timeline/history.ts", "../tokens.ts"],
  ["src/agent/memory/goals.ts", "drizzle-orm"],
  ["src/agent/memory/goals.ts", "../../protocol/agent.ts"],
];

/** Where import number `index` is planted: beside the file it is named after, or in that file where a rule names it. */
const place = (file: string, index: number): string => {
  const { dir, ext, name } = parse(file);
  return ["agent", "space", "workspace", "journal", "records", "identity"].includes(name)
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
  const cases = [...wrong, ...right];
  const planted = cases.map(([file, specifier], index): [string, string] => [place(file, index), specifier]);
  const refused = refusedIn(plant(planted), "style/noRestrictedImports");
  const numbered = cases.map(([file, specifier], index) => ({ file, specifier, at: place(file, index), index }));

  it.each(numbered.slice(0, wrong.length))("the linter refuses that $file imports $specifier", ({ at }) => {
    expect(refused).toContain(at);
  });

  it.each(numbered.slice(wrong.length))("the linter lets $file import $specifier", ({ at }) => {
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
