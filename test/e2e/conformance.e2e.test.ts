import { expect, test } from "vitest";
import { answerFixture } from "../mcp-server/conformance/fixture.ts";
import { runSuite } from "../mcp-server/conformance/suite.ts";
import { listenForMcp } from "./support/mcp-listener.ts";

/** The current revision, by Node. `npm run test:conformance` does both, by workerd. */
test("[M7] the public conformance suite finds no fault in the current revision", async () => {
  const listener = await listenForMcp(answerFixture);
  const { passed, faults } = await runSuite(listener.url, "2026-07-28");
  await listener.kill();
  expect(faults).toEqual([]);
  expect(passed).toBeGreaterThan(100);
}, 60_000);
