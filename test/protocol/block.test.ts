import { expect, test } from "vitest";
import { Permission } from "../../src/protocol/block.ts";

test.each(["Owner", { toString: 1 }, undefined])(
  "[S4] a wrong permission is refused, without its value: %j",
  (input) => {
    const { error } = Permission.safeParse(input);
    expect(error?.issues[0]?.message).toMatch(/^must be a permission: ReadOnly, [\w, ]+ or Admin$/);
  },
);
