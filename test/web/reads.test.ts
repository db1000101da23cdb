import { expect, test } from "vitest";
import { readsInWords } from "../../src/web/timeline/presence.ts";

test("[C8] the page says which spaces an agent read, and whether its reader is in them", () => {
  const board = { spaceId: "spc_BOARD", name: "Board", members: 3 };
  const lab = { spaceId: "spc_LAB", name: "Lab", members: 1 };
  expect(readsInWords([board], new Map())).toBe('read "Board" (3 members, you are not one)');
  expect(readsInWords([board, lab], new Map([["spc_LAB", "Lab"]]))).toBe(
    'read "Board" (3 members, you are not one) and "Lab" (1 member)',
  );
});

test("[C8] the page names a space that tells no name to who is in it, and to nobody else", () => {
  const [board, lab, den] = ["spc_BOARD", "spc_LAB", "spc_DEN"].map((spaceId) => ({ spaceId }));
  const own = new Map([["spc_LAB", "Lab"]]);
  expect(readsInWords([board ?? {}], own)).toBe("read a space that you are not in");
  expect(readsInWords([board ?? {}, lab ?? {}, den ?? {}, {}], own)).toBe(
    'read "Lab", 2 spaces that you are not in, and another space',
  );
});
