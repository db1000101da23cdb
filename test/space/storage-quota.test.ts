import { expect, test } from "vitest";
import { maxDatabaseBytes } from "../../src/space/bounds.ts";
import { checkRoom } from "../../src/space/room.ts";

test("[B3] a space that holds maxDatabaseBytes takes no more, and says limit_reached by name", () => {
  expect(() => checkRoom({ databaseBytes: () => maxDatabaseBytes })).not.toThrow();
  expect(() => checkRoom({ databaseBytes: () => maxDatabaseBytes + 1 })).toThrow(
    expect.objectContaining({ code: "limit_reached", message: expect.stringContaining("maxDatabaseBytes") }),
  );
});
