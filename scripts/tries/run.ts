import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startFakeOpenAi } from "../../test/support/fake-openai.ts";
import { startServer } from "../server.ts";
import { canDo } from "./can-do.ts";
import { knows } from "./knows.ts";
import { answerTo, openScene, type Play } from "./scene.ts";

/**
 * `npm run try -- knowing [LINE…]`: what an agent knows of all that it did, tried as a new user would. It works over
 * HTTP, on a house of its own. Its models' words are scripted, and their inputs are read. One line a check; fails if
 * one does not hold. `npm run try -- holes [HOLE…]`: the same as an attacker would (`holes.ts`).
 * `npm run try -- operators`: what an operator does by the docs' commands (`operators.ts`).
 * `npm run try -- skew`: two releases at once (`skew.ts`).
 */
const tries: Record<string, Play[]> = { knowing: [...knows, ...canDo] };
const keys = { ADMIN_KEY: "tried-by-hand", SIGNING_SECRET: "a signing secret, of at least 32 characters" };

const [name = "", ...lines] = process.argv.slice(2);
if (name === "holes") {
  const { tryHoles } = await import("./holes.ts");
  process.exit((await tryHoles(lines.map(Number))) ? 0 : 1);
}
if (name === "operators") {
  const { tryOperators } = await import("./operators.ts");
  process.exit((await tryOperators()) ? 0 : 1);
}
if (name === "skew") {
  const { trySkew } = await import("./skew.ts");
  process.exit((await trySkew(...lines)) ? 0 : 1);
}
const plays = (tries[name] ?? []).filter(({ line }) => lines.length === 0 || lines.includes(line));
if (plays.length === 0) {
  console.error(
    `npm run try -- NAME [LINE…], where NAME is one of: ${[...Object.keys(tries), "holes", "operators", "skew"].join(", ")}`,
  );
  process.exit(1);
}

const dataDirectory = mkdtempSync(join(tmpdir(), "try-"));
const variables = { ...keys, ENVIRONMENT: "development", RATE_LIMITS: "off" };
const server = await startServer({ dataDirectory, variables });
const model = await startFakeOpenAi(answerTo);
const checked: boolean[] = [];
try {
  for (const { line, says, as, go } of plays) {
    console.log(`\n${line}: ${says}`);
    for (const continuity of as) {
      const scene = await openScene(server.url, keys.ADMIN_KEY, model, continuity);
      // A play that cannot go on is a check that does not hold; the others still say what they have to say.
      await go(scene).catch((error: unknown) => scene.check("goes to its end", false, String(error)));
      checked.push(...scene.checked);
      model.release();
    }
  }
} finally {
  await server.stop();
  await model.stop();
  rmSync(dataDirectory, { recursive: true, force: true });
}
const held = checked.filter((holds) => holds).length;
console.log(`\n${held} of ${checked.length}`);
process.exit(held === checked.length ? 0 : 1);
