import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { API, NodeBuilderFlags } from "typescript/unstable/sync";

/**
 * `npm run contracts -- <commit>` records what the actors of that commit ask each other: run it for each release that goes
 * out. `test/protocol/contracts.ts` holds today's actors to the record.
 */
const root = resolve(import.meta.dirname, "..");
const target = "test/protocol/last-release.golden.ts";
const roots = ["workspace", "space", "agent", "delivery"];

/** Has the compiler tell each type down to its texts and numbers: a name would mean what today's sources say. */
const question = `
import type { AgentRpc } from "./protocol/agent-rpc.ts";
import type { Delivery, SpaceRpc, WorkspaceRpc } from "./protocol/rpc.ts";
import type { Outcome } from "./shared/errors.ts";
type Text<T> = (T extends string ? { is: T } : never)["is"];
type Whole<T> = string extends T ? Part<T> : Text<T> | Part<Exclude<T, string>>;
type Part<T> = T extends null | undefined | boolean | number | string | ReadableStream ? T
  : unknown extends T ? T
  : T extends (...asked: infer Asked) => Promise<Outcome<infer Value>> ? (...asked: Whole<Asked>) => Whole<Value>
  : { [Key in keyof T]: Whole<T[Key]> };
const whole = <T>() => null! as Whole<T>;
const workspace = whole<WorkspaceRpc>();
const space = whole<SpaceRpc>();
const agent = whole<AgentRpc>();
const delivery = whole<Delivery>();
`;

const typesOf = (commit: string): [name: string, type: string][] => {
  const place = mkdtempSync(join(tmpdir(), "contracts-"));
  const file = join(place, "src/contracts.ts");
  const compiler = new API({ cwd: place });
  try {
    const sources = execFileSync("git", ["archive", commit, "src", "tsconfig.json"], { cwd: root, maxBuffer: 2 ** 28 });
    execFileSync("tar", ["-x", "-C", place], { input: sources });
    symlinkSync(join(root, "node_modules"), join(place, "node_modules"));
    writeFileSync(file, question);
    const [project] = compiler.updateSnapshot({ openProjects: [join(place, "tsconfig.json")] }).getProjects();
    return roots.map((name) => {
      const declared = `const ${name}`;
      const type = project?.checker.getTypeAtPosition(file, question.indexOf(declared) + declared.length - 1);
      if (!type) throw new Error(`${commit} has no type of ${name}`);
      const flags = NodeBuilderFlags.NoTruncation | NodeBuilderFlags.InTypeAlias;
      return [name, project?.checker.typeToString(type, undefined, flags) ?? ""];
    });
  } finally {
    compiler.close();
    rmSync(place, { recursive: true });
  }
};

/** A shape of this length that comes again is written once, under a name of its own. */
const namedFrom = 40;

/** Each release adds codes of errors, and nobody needs to know them all. */
const errorCodes = /"acting_entity_required"(?: \| "\w+")+/g;

/** The types as declarations, each shape once: an agent's config is written out wherever it comes. */
const declarationsOf = (types: [name: string, type: string][]): string => {
  const uses = new Map<string, number>();
  const nameOf = (shape: string): string => `Shape${[...uses.keys()].indexOf(shape)}`;
  const folded = (text: string): string => {
    const next = text.replaceAll(/\{[^{}]*\}/g, (shape) => {
      uses.set(shape, (uses.get(shape) ?? 0) + 1);
      return nameOf(shape);
    });
    return next === text ? text : folded(next);
  };
  const rests = types.map(([name, type]) => ({ name, rest: folded(type.replaceAll(errorCodes, "any")) }));
  const shapes = [...uses].map(([shape, count]) => ({
    ...{ name: nameOf(shape), shape },
    isNamed: count > 1 && shape.length >= namedFrom,
  }));
  const inPlace = new Map(shapes.filter(({ isNamed }) => !isNamed).map(({ name, shape }) => [name, shape]));
  const unfolded = (text: string): string =>
    text.replaceAll(/\bShape\d+\b/g, (name) => {
      const shape = inPlace.get(name);
      return shape === undefined ? name : unfolded(shape);
    });
  const named = shapes.filter(({ isNamed }) => isNamed);
  const onLines = (text: string): string => text.replaceAll(/; (?=\w+\??: \(|\}$)/g, ";\n  ");
  return [
    ...named.map(({ name, shape }) => `type ${name} = ${unfolded(shape)};`),
    ...rests.map(({ name, rest }) => `export type ${name} = ${onLines(unfolded(rest))};`),
  ].join("\n");
};

const id = execFileSync("git", ["rev-parse", "--short=8", process.argv[2] ?? "HEAD"], { cwd: root, encoding: "utf8" });
const heading = `What the actors of ${id.trim()} ask each other, as \`npm run contracts\` wrote it.`;
writeFileSync(join(root, target), `/** ${heading} */\n${declarationsOf(typesOf(id.trim()))}\n`);
