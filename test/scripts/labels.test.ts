import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { asking } from "../../scripts/asking-guards.ts";
import { guards } from "../../scripts/label-guards.ts";

it.each([...guards, ...asking])("npm run test:labels finds the guard: $name", ({ file, guard }) => {
  expect(readFileSync(file, "utf8").split(guard)).toHaveLength(2);
});
