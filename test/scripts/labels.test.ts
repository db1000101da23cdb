import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { asking } from "../../scripts/asking-guards.ts";
import { guards } from "../../scripts/label-guards.ts";

describe("npm run test:labels finds the guard", () => {
  it.each([...guards, ...asking])("$name", ({ file, guard }) => {
    expect(readFileSync(file, "utf8").split(guard)).toHaveLength(2);
  });
});
