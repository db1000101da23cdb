import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { revisions, runSuite } from "../test/mcp-server/conformance/suite.ts";
import { startServer } from "./server.ts";

/**
 * `npm run test:conformance`: the protocol's public suite against `/mcp`'s server in workerd, in both revisions, over tools
 * that the suite asks for. Says what does not apply and why, and fails if anything else does.
 */
const dataDirectory = mkdtempSync(join(tmpdir(), "conformance-"));
const config = "test/mcp-server/conformance/wrangler.toml";
const server = await startServer({ config, dataDirectory, variables: {} });
let faults = 0;
for (const revision of revisions) {
  const told = await runSuite(`${server.url}/mcp`, revision);
  faults += told.faults.length;
  console.log(`${revision}: ${told.passed} checks passed, ${told.faults.length} failed`);
  for (const { scenario, id, errorMessage = "" } of told.faults) console.log(`  ✗ ${scenario} ${id}: ${errorMessage}`);
  const byReason = Map.groupBy(told.inapplicable, ([, why = "a fault"]) => why);
  for (const [why, scenarios] of byReason) {
    console.log(`  do not apply, since ${why}: ${scenarios.map(([scenario]) => scenario).join(", ")}`);
  }
  if (told.passed === 0) console.error(told.output);
}
await server.stop();
rmSync(dataDirectory, { recursive: true });
process.exitCode = faults > 0 ? 1 : 0;
