import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs, stripVTControlCharacters } from "node:util";

/**
 * `npm run test:labels`: takes each guard of confidential spaces out, one by one, and fails where no test then does. A
 * name, or a part of one, takes those guards alone. The files are put back, however it ends.
 */
type Guard = {
  name: string;
  file: string;
  /** What guards, as it stands in the file once, and what stands there without it. */
  guard: string;
  open: string;
  /** Tests of which one has to fail. */
  tests: string[];
};

const worlds = ["test/fuzz/timeline-worlds", "test/fuzz/conscious-worlds"];
const space = ["test/space/confidential", "test/space/batch.test"];
const routes = ["test/routes/compartments", "test/routes/spaces.actor"];
const agent = ["test/agent/compartments.actor"];

const guards: Guard[] = [
  {
    name: "an open mind is told of no confidential message",
    file: "src/space/delivery/batch.ts",
    guard: "seq > openUpTo === (compartmentOf !== null)",
    open: "seq > openUpTo === (compartmentOf !== null) || compartmentOf === null",
    tests: [...space, ...worlds],
  },
  {
    name: "a compartment is told of no message from before the switch",
    file: "src/space/delivery/batch.ts",
    guard: "seq > openUpTo === (compartmentOf !== null)",
    open: "seq > openUpTo === (compartmentOf !== null) || compartmentOf !== null",
    tests: space,
  },
  {
    name: "each mind is told of decisions about its own calls alone",
    file: "src/space/delivery/batch.ts",
    guard: 'isOwnedBy(messageIn(row).toolCall?.id ?? "", id)',
    open: 'isOwnedBy(messageIn(row).toolCall?.id ?? "", id) || true',
    tests: space,
  },
  {
    name: "an open mind reads up to the switch",
    file: "src/space/reading.ts",
    guard: "confidentialFrom === null || mindId === compartmentId(services.ids, agentId, space.id)",
    open: "confidentialFrom === null || mindId !== undefined",
    tests: [...space, ...worlds],
  },
  {
    name: "a compartment speaks in its own space alone",
    file: "src/space/posting.ts",
    guard: 'mindId === undefined || mindId === compartmentId(ids, agentId, settings.find()?.id ?? "")',
    open: 'mindId !== "" || mindId === compartmentId(ids, agentId, settings.find()?.id ?? "")',
    tests: space,
  },
  {
    name: "an open mind waits for nobody in a confidential space",
    file: "src/space/posting.ts",
    guard: "confidentialFrom === null || mindId !== undefined",
    open: "confidentialFrom === null || true",
    tests: space,
  },
  {
    name: "an admin who is no member reads nothing that is said",
    file: "src/space/rights.ts",
    guard: 'confidentialFrom === null || principal.kind === "key"',
    open: "confidentialFrom === null || principal.kind.length > 0",
    tests: ["test/routes/confidential.actor"],
  },
  {
    name: "an admin who is no member reads nothing of a compartment",
    file: "src/protocol/principal.ts",
    guard: '!confidential || principal.kind === "key"',
    open: "!confidential || principal.kind.length > 0",
    tests: ["test/routes/confidential.actor"],
  },
  {
    name: "?space= names a confidential space",
    file: "src/routes/mind-query.ts",
    guard: "if (space.confidential) return requireReaderOf(space, principal);",
    open: "if (space.id) return requireReaderOf(space, principal);",
    tests: routes,
  },
  {
    name: "no run's record names a confidential space",
    file: "src/agent/calls/reads.ts",
    guard: "snapshot.deleted || snapshot.confidential",
    open: "snapshot.deleted",
    tests: [...agent, ...routes, "test/agent/reads"],
  },
  {
    name: "a tool is in a compartment only where its config allows it",
    file: "src/agent/run/settings.ts",
    guard: 'confidential === "allowed"',
    open: 'confidential !== ""',
    tests: [...agent, "test/agent/settings"],
  },
  {
    name: "a compartment takes no hooks and no triggers",
    file: "src/agent/api/compartments.ts",
    guard: "!ofOpenMind.has(method)",
    open: "!ofOpenMind.has(method) || method !== ownId",
    tests: [...agent, ...routes],
  },
  {
    name: "a delivery is taken by the mind that it names",
    file: "src/agent/api/compartments.ts",
    guard: "(compartment?.mindId ?? row.id) === mindOf(row)",
    open: "mindOf(row) === mindOf(row)",
    tests: agent,
  },
  {
    name: "a compartment is made under its own id alone",
    file: "src/agent/api/compartments.ts",
    guard: "!compartment || !isMeant ||",
    open: "!compartment ||",
    tests: agent,
  },
  {
    name: "a trace of a compartment holds no words",
    file: "src/agent/tracing/tracer.ts",
    guard: "agent().compartmentId !== null",
    open: 'agent().compartmentId === ""',
    tests: ["test/agent/tracing", "test/routes/compartments"],
  },
];

const { positionals } = parseArgs({ allowPositionals: true });
const root = resolve(import.meta.dirname, "..");
const asked = guards.filter(({ name }) => positionals.length === 0 || positionals.some((part) => name.includes(part)));
let survived = 0;

for (const { name, file, guard, open, tests } of asked) {
  const path = join(root, file);
  const before = readFileSync(path, "utf8");
  if (before.split(guard).length !== 2) {
    console.error(`${file} does not hold this guard once: ${guard}`);
    survived += 1;
    continue;
  }
  try {
    writeFileSync(
      path,
      before.replace(guard, () => open),
    );
    const vitest = join(root, "node_modules/vitest/vitest.mjs");
    // A few hundred conversations are enough: without its guard a world tells at once.
    const env = { ...process.env, FUZZ_INPUTS: "160" };
    const ran = spawnSync(process.execPath, [vitest, "run", "--bail=1", ...tests], {
      cwd: root,
      env,
      encoding: "utf8",
    });
    const counted = /Tests\s.*\d failed/.test(stripVTControlCharacters(ran.stdout));
    const isCaught = ran.status !== 0 && counted;
    if (!isCaught) survived += 1;
    console.log(JSON.stringify({ guard: name, file, caught: isCaught }));
  } finally {
    writeFileSync(path, before);
  }
}
console.log(JSON.stringify({ guards: asked.length, caught: asked.length - survived, survived }));
process.exit(survived > 0 ? 1 : 0);
