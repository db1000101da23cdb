import { randomBytes } from "node:crypto";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { createApi } from "./api.ts";
import { nextStep, type Prints, readVariables, resealAll, workspacesOf, writeVariable } from "./secrets.ts";

/**
 * `npm run rotate`: does the next step of a rotation of the deployment's secrets, and says what comes after it. It goes on
 * wherever it was cut off. Without `--url` it is for this machine's house.
 */
const root = resolve(import.meta.dirname, "..");
const { values } = parseArgs({
  options: {
    url: { type: "string" },
    secrets: { type: "string" },
    workspaces: { type: "string" },
    finish: { type: "boolean" },
  },
});
const isHere = values.url === undefined;
const url = (values.url ?? `http://127.0.0.1:${process.env.PORT ?? 8787}`).replace(/\/$/, "");
const path = resolve(values.secrets ?? join(root, isHere ? ".dev.vars" : ".prod.vars"));
const variables = readVariables(path);
/** What begins with -- alone is for npm itself. */
const again = isHere ? "npm run rotate --" : `npm run rotate -- --url ${url}`;
const take = isHere
  ? "Stop npm start and start it again, so that it takes it."
  : `Deploy it: npx wrangler secret bulk ${path}.`;
const put = `${take} Then: ${again.replace(/ --$/, "")}`;

const fail = (text: string): never => {
  console.error(text);
  process.exit(1);
};

const answer = await fetch(`${url}/healthz`).catch(() =>
  fail(`Nothing answers at ${url}: start it first (npm start).`),
);
const { secrets: live }: { secrets?: Prints } = await answer.json();
if (!answer.ok || !live) fail(`${url}/healthz tells no prints: deploy this release first (npm run deploy).`);

const today = new Date().toISOString().slice(0, 10);
const next = nextStep(variables, live as Prints, { name: today, secret: randomBytes(32).toString("base64url") });
switch (next.step) {
  case "refuse":
    fail(next.why);
    break;
  case "add":
    writeVariable(path, "SIGNING_SECRETS", next.value);
    console.log(`${path} has a new first secret. Keep that file where you keep secrets.\n${put}`);
    break;
  case "put":
    console.log(`${url} does not sign with the first secret of ${path} yet.\n${put}`);
    break;
  case "reseal": {
    const adminKey = process.env.ADMIN_KEY ?? variables.ADMIN_KEY ?? fail("Set ADMIN_KEY: the operator's key.");
    const operator = createApi(url, adminKey);
    const named = (values.workspaces ?? "").split(",").filter((id) => id !== "");
    const workspaces = await workspacesOf(operator, named).catch((error: unknown) =>
      fail(`${error}\nWhere it has no list of its workspaces, name all of them: ${again} --workspaces wsp_…,wsp_…`),
    );
    const left = await resealAll(operator, workspaces, {
      told: (id, { state, agents, unopened, hanging }) => {
        console.log(`${id}: ${state}, ${agents} agents`);
        if (state !== "done")
          console.log(`  still hangs on an older one: ${JSON.stringify({ ...(hanging as object), unopened })}`);
      },
    });
    console.log(
      `${workspaces.length} workspaces. One that was made before 2026-11-24 may not be listed yet: name it once beside them: ${again} --workspaces wsp_….`,
    );
    if (left.length > 0) fail(`Not all is sealed anew: write what is unopened again, then npm run rotate once more.`);
    if (values.finish) {
      writeVariable(path, "SIGNING_SECRETS", next.value);
      console.log(
        `Nothing needs ${next.leaving.join(", ")} any more: ${path} has it for ids alone.\n${take} That was the last step.`,
      );
    } else {
      console.log(
        `Nothing is sealed by ${next.leaving.join(", ")} any more. Tokens that it signed go on till their end.\n` +
          `Let it leave once they have ended, or at once where it leaked (everybody signs in again): ${again} --finish`,
      );
    }
  }
}
