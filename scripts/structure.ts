import { globSync, readFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { argv } from "node:process";

/**
 * `node scripts/structure.ts` prints the figures of the structure and fails where one is beyond its bound; `npm run
 * check` runs it. `node scripts/structure.ts smallFiles` lists what that figure counts. Lower a bound whenever the code
 * is better than it. Raise one only with a decision that says why.
 */
type Bound = { figure: keyof Structure; atMost: number; what: string };

const bounds: Bound[] = [
  { figure: "lines", atMost: 70_900, what: "lines of src" },
  { figure: "agentLines", atMost: 26_400, what: "lines of src/agent" },
  { figure: "testLines", atMost: 78_200, what: "lines of test, without the databases of migrations" },
  { figure: "files", atMost: Number.POSITIVE_INFINITY, what: "files of src" },
  { figure: "agentFiles", atMost: 12, what: "files in src/agent itself" },
  { figure: "subclasses", atMost: 0, what: "classes that extend a class of ours" },
  { figure: "mutualFolders", atMost: 0, what: "pairs of folders that point at each other" },
  {
    figure: "continuityAsks",
    atMost: 1,
    what: "places that ask which continuity it is, elsewhere than where it belongs",
  },
  { figure: "upwardImports", atMost: 0, what: "imports of a parent's file that is no leaf module" },
  { figure: "smallFiles", atMost: 5, what: "files under 25 lines with one importer" },
  { figure: "smallishFiles", atMost: 40, what: "files under 40 lines with one importer" },
  { figure: "longFiles", atMost: 0, what: "files over 400 lines" },
];

/** Each figure is a number of lines or the list of what it counts. */
export type Structure = {
  lines: number;
  agentLines: number;
  testLines: number;
  files: string[];
  /** Files that stand directly in `src/agent`. */
  agentFiles: string[];
  /** `class A extends B`, where B is declared in src. A base whose name ends in `Error` does not count. */
  subclasses: string[];
  /** Two folders of one parent, each with all that it holds, of which each imports something of the other. */
  mutualFolders: string[];
  /**
   * Imports of a file that stands in a folder above. Leaf modules do not count. These are `schema.ts`, `bounds.ts`,
   * `types.ts`, `env.ts` (the worker's bindings), and a module whose only imports of its own folder are leaf modules.
   */
  upwardImports: string[];
  /** Comparisons with a continuity's name, but in `run/continuity`, `context` and `protocol`. `continuityFacts` says what differs. */
  continuityAsks: string[];
  /** Files of src that one other file of src imports, by their length. */
  smallFiles: string[];
  smallishFiles: string[];
  longFiles: string[];
};

type Source = { path: string; text: string; lines: number; imports: string[] };

const leafNames = ["schema.ts", "bounds.ts", "types.ts", "env.ts"];

export const structureOf = (root: string): Structure => {
  const sources = readSources(root, "src/**/*.{ts,tsx,css,js,html}");
  const edges = sources.flatMap(({ path, imports }) => imports.map((imported) => ({ path, imported })));
  const inAgent = sources.filter(({ path }) => path.startsWith("src/agent/"));
  const importers = new Map(sources.map(({ path }) => [path, new Set<string>()]));
  for (const { path, imported } of edges) importers.get(imported)?.add(path);
  const under = (lines: number): string[] =>
    sources.filter((one) => one.lines < lines && importers.get(one.path)?.size === 1).map(({ path }) => path);
  return {
    lines: linesOf(sources),
    agentLines: linesOf(inAgent),
    // The databases of migrations are generated, and grow with each migration.
    testLines: linesOf(readSources(root, "test/**/*.*").filter(({ path }) => !path.endsWith(".sql"))),
    files: sources.map(({ path }) => path),
    agentFiles: inAgent.map(({ path }) => path).filter((path) => dirname(path) === "src/agent"),
    subclasses: subclassesOf(sources),
    mutualFolders: mutualFoldersOf(edges),
    continuityAsks: continuityAsksOf(sources),
    upwardImports: upwardImportsOf(sources, edges),
    smallFiles: under(25),
    smallishFiles: under(40),
    longFiles: sources.filter(({ lines }) => lines > 400).map(({ path }) => path),
  };
};

const linesOf = (sources: Source[]): number => sources.reduce((sum, { lines }) => sum + lines, 0);

/** Import lines and `import()` calls. Only relative paths matter here, and those name a file with its extension. */
const importPattern = /(?:\bfrom|\bimport)\s*\(?\s*"(\.[^"]+)"/g;

const readSources = (root: string, pattern: string): Source[] =>
  globSync(pattern, { cwd: root })
    .sort()
    .map((path) => {
      const text = readFileSync(join(root, path), "utf8");
      const imports = [...text.matchAll(importPattern)].map(([, specifier = ""]) => join(dirname(path), specifier));
      return { path, text, lines: text.split("\n").length - 1, imports: [...new Set(imports)] };
    });

const subclassesOf = (sources: Source[]): string[] => {
  const ours = new Set(sources.flatMap(({ text }) => [...text.matchAll(/\bclass (\w+)/g)].map(([, name]) => name)));
  return sources.flatMap(({ path, text }) =>
    [...text.matchAll(/\bclass (\w+)(?:<[^{]*?>)? extends (\w+)/g)]
      .filter(([, , base = ""]) => ours.has(base) && !base.endsWith("Error"))
      .map(([, name, base]) => `${path}: ${name} extends ${base}`),
  );
};

const continuityRooms = /^src\/(?:protocol|agent\/context|agent\/run\/continuity)\//;

const continuityAsksOf = (sources: Source[]): string[] =>
  sources
    .filter(({ path }) => !continuityRooms.test(path))
    .flatMap(({ path, text }) =>
      [...text.matchAll(/\S*continuity [!=]== "\w+"/g)].map(([compared]) => `${path}: ${compared}`),
    );

type Edge = { path: string; imported: string };

/** An import as it is seen from the nearest folder that holds both files: what is left of both paths. */
const apart = ({ path, imported }: Edge): { shared: string[]; from: string[]; to: string[] } => {
  const [from, to] = [path.split("/"), imported.split("/")];
  const same = from.findIndex((part, index) => part !== to[index]);
  return { shared: from.slice(0, same), from: from.slice(same), to: to.slice(same) };
};

const mutualFoldersOf = (edges: Edge[]): string[] => {
  const arrows = new Set<string>();
  for (const edge of edges) {
    const { shared, from, to } = apart(edge);
    if (from.length > 1 && to.length > 1)
      arrows.add(`${[...shared, from[0]].join("/")} ${[...shared, to[0]].join("/")}`);
  }
  return [...arrows].filter((arrow) => {
    const [from = "", to = ""] = arrow.split(" ");
    return from < to && arrows.has(`${to} ${from}`);
  });
};

const upwardImportsOf = (sources: Source[], edges: Edge[]): string[] => {
  const importsOf = new Map(sources.map(({ path, imports }) => [path, imports]));
  const isLeaf = (path: string, seen: string[] = []): boolean =>
    leafNames.includes(basename(path)) ||
    (importsOf.get(path) ?? [])
      .filter((imported) => imported.startsWith(`${dirname(path)}/`))
      .every(
        (imported) =>
          dirname(imported) === dirname(path) && !seen.includes(imported) && isLeaf(imported, [...seen, path]),
      );
  return edges
    .filter((edge) => {
      const { from, to } = apart(edge);
      return from.length > 1 && to.length === 1 && !isLeaf(edge.imported);
    })
    .map(({ path, imported }) => `${path} imports ${imported}`);
};

const countOf = (value: number | string[]): number => (typeof value === "number" ? value : value.length);

/** Each figure that is beyond its bound, followed by the list of what it counts. */
export const beyondBounds = (structure: Structure): string[] =>
  bounds
    .filter(({ figure, atMost }) => countOf(structure[figure]) > atMost)
    .flatMap(({ figure, what, atMost }) => [`more than ${atMost} ${what}`, ...listOf(structure[figure])]);

const listOf = (value: number | string[]): string[] =>
  typeof value === "number" ? [] : value.map((one) => `  ${one}`);

const isFigure = (name: string): name is keyof Structure => bounds.some(({ figure }) => figure === name);

if (import.meta.main) {
  const structure = structureOf(resolve(import.meta.dirname, ".."));
  const [asked = ""] = argv.slice(2);
  if (isFigure(asked)) {
    for (const line of listOf(structure[asked])) console.log(line);
  } else {
    for (const { figure, atMost, what } of bounds) {
      const bound = Number.isFinite(atMost) ? ` (at most ${atMost.toLocaleString("en")})` : "";
      console.log(`  ${countOf(structure[figure]).toLocaleString("en").padStart(7)} ${what}${bound}`);
    }
    const beyond = beyondBounds(structure);
    for (const line of beyond) console.error(line);
    process.exitCode = beyond.length > 0 ? 1 : 0;
  }
}
