import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { beyondBounds, structureOf } from "../../scripts/structure.ts";

const trees: string[] = [];
afterEach(() => {
  for (const tree of trees.splice(0)) rmSync(tree, { recursive: true });
});

/** A repository that holds nothing but these files. */
const structureWith = (files: Record<string, string>) => {
  const tree = mkdtempSync(join(tmpdir(), "structure-"));
  trees.push(tree);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(tree, path)), { recursive: true });
    writeFileSync(join(tree, path), text);
  }
  return structureOf(tree);
};

const importing = (...specifiers: string[]): string =>
  specifiers.map((one) => `import { x } from "${one}";\n`).join("");

it("counts lines of code, styles and pages in src, in src/agent and in test", () => {
  const structure = structureWith({
    "src/a.ts": "1\n2\n",
    "src/web/a.css": "1\n",
    "src/web/logo.svg": "1\n",
    "src/agent/b/c.tsx": "1\n2\n3\n",
    "test/a.test.ts": "1\n2\n3\n4\n",
    "test/golden.txt": "1\n",
  });
  expect(structure).toMatchObject({ lines: 6, agentLines: 3, testLines: 5 });
  expect(structure.files).toEqual(["src/a.ts", "src/agent/b/c.tsx", "src/web/a.css"]);
});

it("counts only the files that stand directly in src/agent", () => {
  const { agentFiles } = structureWith({ "src/agent/agent.ts": "", "src/agent/run/run.ts": "", "src/space/a.ts": "" });
  expect(agentFiles).toEqual(["src/agent/agent.ts"]);
});

it("counts a class that extends a class of src, but not an error or a library's class", () => {
  const { subclasses } = structureWith({
    "src/a.ts": "export class Base extends DurableObject<Env> {}\nclass OwnError extends Error {}\n",
    "src/b.ts": "export abstract class Middle<T> extends Base {}\nclass WorseError extends OwnError {}\n",
  });
  expect(subclasses).toEqual(["src/b.ts: Middle extends Base"]);
});

it("counts where a continuity is compared by its name, but in the rooms that it belongs to", () => {
  const asks = 'const isIt = config.continuity === "timeline" || continuity !== "consciousness";\n';
  const { continuityAsks } = structureWith({
    "src/agent/inbox/a.ts": asks,
    "src/agent/run/b.ts": "const isSame = run.continuity === config.continuity;\n",
    "src/agent/run/continuity/c.ts": asks,
    "src/agent/context/d.ts": asks,
    "src/protocol/e.ts": asks,
  });
  expect(continuityAsks).toEqual([
    'src/agent/inbox/a.ts: config.continuity === "timeline"',
    'src/agent/inbox/a.ts: continuity !== "consciousness"',
  ]);
});

it("counts two folders beside each other that import each other at any depth", () => {
  const { mutualFolders } = structureWith({
    "src/agent/calls/a.ts": importing("../run/deep/b.ts"),
    "src/agent/run/deep/b.ts": "",
    "src/agent/run/c.ts": 'const later = await import("../calls/a.ts");\n',
    "src/space/a.ts": importing("../agent/calls/a.ts"),
  });
  expect(mutualFolders).toEqual(["src/agent/calls src/agent/run"]);
});

it("does not count a folder and the folder that holds it as a pair", () => {
  const structure = structureWith({
    "src/agent/agent.ts": importing("./run/run.ts"),
    "src/agent/run/run.ts": importing("../types.ts"),
    "src/agent/types.ts": "",
  });
  expect(structure).toMatchObject({ mutualFolders: [], upwardImports: [] });
});

it("counts an import of a parent's file, unless that file is a leaf module", () => {
  const { upwardImports } = structureWith({
    "src/agent/schema.ts": "",
    "src/agent/ledger.ts": importing("./schema.ts", "../shared/clock.ts"),
    "src/agent/deliver.ts": importing("./run/step.ts"),
    "src/agent/wake.ts": importing("./deliver.ts"),
    "src/agent/run/step.ts": importing("../schema.ts", "../ledger.ts", "../wake.ts"),
    "src/shared/clock.ts": "",
  });
  expect(upwardImports).toEqual(["src/agent/run/step.ts imports src/agent/wake.ts"]);
});

it("counts short files that one file imports, and files over 400 lines", () => {
  const short = "line\n".repeat(24);
  const structure = structureWith({
    "src/once.ts": short,
    "src/twice.ts": short,
    "src/never.ts": short,
    "src/longer.ts": `${short}\n`,
    "src/user.ts": importing("./once.ts", "./twice.ts", "./longer.ts") + "line\n".repeat(398),
    "src/other.ts": importing("./twice.ts") + "line\n".repeat(399),
  });
  expect(structure.smallFiles).toEqual(["src/once.ts"]);
  expect(structure.smallishFiles).toEqual(["src/longer.ts", "src/once.ts"]);
  expect(structure.longFiles).toEqual(["src/user.ts"]);
});

it("tells a figure that is beyond its bound, with what it counts", () => {
  const structure = structureWith({ "src/long.ts": "line\n".repeat(401) });
  expect(beyondBounds(structure)).toEqual(["more than 0 files over 400 lines", "  src/long.ts"]);
  expect(beyondBounds({ ...structure, longFiles: [] })).toEqual([]);
});
