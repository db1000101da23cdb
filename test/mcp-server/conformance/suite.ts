import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import * as z from "zod";

/** The protocol's public conformance suite, against a server of the fixture. */
const program = resolve(import.meta.dirname, "../../../node_modules/.bin/conformance");

const Checks = z.array(z.object({ id: z.string(), status: z.string(), errorMessage: z.string().optional() }));
type Check = z.infer<typeof Checks>[number] & { scenario: string };

/** What `/mcp` does not offer, so that these scenarios, or these checks of them, do not apply. */
const inapplicable: { scenarios: RegExp; checks?: string[]; why: string }[] = [
  { scenarios: /^(?:prompts-|completion-)/, why: "there are no prompts: tools and resources are all that there is" },
  { scenarios: /^caching$/, checks: ["sep-2549-prompts-list-caching-hints"], why: "there are no prompts" },
  {
    scenarios: /^(?:logging-|tools-call-with-logging)/,
    why: "clients are sent no logs, which the protocol deprecates",
  },
  { scenarios: /^(?:tools-call-(?:image|audio|embedded|mixed)|resources-read-binary)/, why: "all is told as text" },
  {
    scenarios: /^(?:tools-call-(?:sampling|elicitation)|elicitation-|input-required-)/,
    why: "the server asks a client nothing: 2025-11-25 would need sessions for it",
  },
  {
    scenarios: /^server-stateless$/,
    checks: ["sep-2575-server-rejects-undeclared-capability", "sep-2575-missing-capability-http-400"],
    why: "no tool needs a capability of the client",
  },
  { scenarios: /^resources-(?:un)?subscribe/, why: "resources are read and not watched" },
  { scenarios: /^tasks-/, why: "an extension: a call that takes long says how to go on" },
  { scenarios: /^http-custom-header-/, why: "no argument of a tool is sent as a header" },
];

export const revisions = ["2026-07-28", "2025-11-25"] as const;

const runProgram = (args: string[]): Promise<string> =>
  new Promise((done, fail) => {
    const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += String(chunk)));
    child.once("error", fail);
    child.once("close", () => done(output));
  });

/** Runs all that a revision requires. Answers how many checks passed, why others do not apply, and what is a fault. */
export const runSuite = async (url: string, revision: (typeof revisions)[number]) => {
  const directory = mkdtempSync(join(tmpdir(), "conformance-"));
  const output = await runProgram(["server", "--url", url, "--requirements", revision, "-o", directory]);
  const checks = readdirSync(directory).flatMap((name): Check[] => {
    const scenario = name.replace(/^server-(?=.*-\d{4}-\d\d-\d\dT)/, "").replace(/-\d{4}-\d\d-\d\dT.*$/, "");
    const told = Checks.parse(JSON.parse(readFileSync(join(directory, name, "checks.json"), "utf8")));
    return told.map((check) => ({ ...check, scenario }));
  });
  rmSync(directory, { recursive: true });
  const failed = checks.filter(({ status }) => status === "FAILURE");
  const reasonOf = ({ id, scenario }: Check): string | undefined =>
    inapplicable.find((one) => one.scenarios.test(scenario) && (one.checks?.includes(id) ?? true))?.why;
  return {
    passed: checks.filter(({ status }) => status === "SUCCESS").length,
    inapplicable: new Map(failed.map((check) => [check.scenario, reasonOf(check)])),
    faults: failed.filter((check) => reasonOf(check) === undefined),
    output,
  };
};
