import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

/** Sealed data by the file that seals it, and who seals it anew after a rotation. */
const sealed: Record<string, string> = {
  "src/routes/keys-and-secrets.ts": "secrets of the workspace, and the agents' copies: workspace/resealing.ts",
  "src/routes/hooks.ts": "secrets of hooks: agent/inbox/hooks.ts, which workspace/resealing.ts asks",
  "src/routes/endpoints.ts":
    "secrets of endpoints, and their objects' copies: workspace/endpoints.ts, for resealing.ts",
  "src/routes/idempotent.ts": "answers that hold a secret: workspace/resealing.ts",
};

test("[L5] whatever the code seals has somebody who seals it anew", () => {
  const files = globSync("src/**/*.ts", { cwd: `${import.meta.dirname}/../..` });
  const read = (file: string) => readFileSync(`${import.meta.dirname}/../../${file}`, "utf8");
  const sealing = files.filter((file) =>
    /import \{[^}]*\bseal\b[^}]*\} from "[./]*auth\/sealing\.ts"/.test(read(file)),
  );
  expect(sealing.toSorted()).toEqual(Object.keys(sealed).toSorted());
});
