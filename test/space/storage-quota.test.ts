import { expect, test } from "vitest";
import { maxDatabaseBytes } from "../../src/space/bounds.ts";
import { requireStorage } from "../../src/space/services.ts";

test("[B3] a space that holds maxDatabaseBytes takes no more, and says limit_reached by name", () => {
  expect(() => requireStorage({ databaseBytes: () => maxDatabaseBytes })).not.toThrow();
  expect(() => requireStorage({ databaseBytes: () => maxDatabaseBytes + 1 })).toThrow(
    expect.objectContaining({ code: "limit_reached", message: expect.stringContaining("maxDatabaseBytes") }),
  );
});
