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
