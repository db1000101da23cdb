import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Server, startServer } from "../../scripts/server.ts";
import { type House, openHouse } from "../../test/e2e/support/house.ts";

export type Rivals = { house: House; baseline: Server };

/** Runs `measure` with a worker of the benches on empty data, then ends it. */
export const withServer = async <T>(config: string, measure: (server: Server) => Promise<T>): Promise<T> => {
  const dataDirectory = mkdtempSync(join(tmpdir(), "bench-"));
  const server = await startServer({ dataDirectory, config, variables: {} });
  try {
    return await measure(server);
  } finally {
    await server.stop();
    rmSync(dataDirectory, { recursive: true, force: true });
  }
};

/**
 * Runs `measure` with the product's worker and the bare one, both real and both on this machine, then ends them. The
 * product's is the one that counts (`bench/edge`) unless `options` names another.
 */
export const withRivals = <T>(
  measure: (rivals: Rivals) => Promise<T>,
  options: Parameters<typeof openHouse>[0] = { config: "bench/edge/wrangler.toml" },
): Promise<T> =>
  withServer("bench/baseline/wrangler.toml", async (baseline) => {
    const house = await openHouse(options);
    try {
      return await measure({ house, baseline });
    } finally {
      await house.close();
    }
  });

export const postJson = async <T>(url: string, body: unknown): Promise<T> => {
  const response = await fetch(url, { method: "POST", body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
  return (await response.json()) as T;
};
