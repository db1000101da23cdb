import { expect, test } from "vitest";
import { Permission } from "../../src/protocol/block.ts";

test.each([
  ["Owner", "'Owner'"],
  [{ toString: 1 }, `'{"toString":1}'`],
  [undefined, "'undefined'"],
])("[S4] an unknown permission is refused in words, whatever it is: %j", (input, said) => {
  const { error } = Permission.safeParse(input);
  expect(error?.issues[0]?.message).toContain(`is an unknown permission ${said}, expected: ReadOnly`);
});
