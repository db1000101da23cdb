import { getTableConfig, SQLiteTable } from "drizzle-orm/sqlite-core";
import { expect, test } from "vitest";
import * as inbox from "../../../src/agent/inbox/schema.ts";
import * as secretUses from "../../../src/agent/memory/secret-uses/schema.ts";
import { places } from "../../../src/agent/redaction/places.ts";
import * as agent from "../../../src/agent/schema.ts";
import * as mcp from "../../../src/agent/tools/mcp/schema.ts";
import * as transfer from "../../../src/agent/transfer/schema.ts";

/**
 * A new column of text is either searched by redactions or joins this list. The list holds ids, kinds, times, settings,
 * documents that are deleted as such, and the agent's own short names.
 */
const tables = [agent, inbox, mcp, secretUses, transfer]
  .flatMap((schema) => Object.values<unknown>(schema))
  .filter((each) => each instanceof SQLiteTable)
  .map(getTableConfig);

const unread = Map.groupBy(
  tables.flatMap(({ name, columns }) =>
    columns
      .filter(({ columnType }) => columnType.startsWith("SQLiteText"))
      .map((column) => ({ table: name, column: column.name }))
      .filter(
        ({ table, column }) =>
          !places.some(({ json, text, isLabel, key, ...place }) => {
            return place.table === table && [...json, ...text, ...(isLabel ? [key] : [])].includes(column);
          }),
      ),
  ),
  ({ table }) => table,
);

test("[L4] each column of an agent is looked through, or known to hold no words", () => {
  const found = Object.fromEntries(
    [...unread].map(([table, all]) => [table, all.map(({ column }) => column).join(" ")]),
  );
  expect(found).toMatchInlineSnapshot(`
    {
      "agent": "id workspace_id compartment_id compartment_space_id config active_space_id correction_model secrets own_root",
      "archival": "id content metadata source",
      "calls": "call_id space_id active_space_id root stream_id phase told lease",
      "compartments": "space_id mind_id",
      "feed": "part hash",
      "goals": "status",
      "hooks": "id scheme name header id_header event_header template events sealed version previous_sealed",
      "imports": "workspace_id agent_id token envelope head report",
      "inbox": "event_id type root_id status",
      "jobs": "kind key payload",
      "journal": "kind",
      "journal_names": "part",
      "ledger": "day reserved within",
      "mcp_lists": "tools",
      "mcp_servers": "name address tools left_out protocol_version",
      "out_of_budget": "person budget spaces",
      "overheard": "event_id type root_id",
      "plans": "run_after scheduled_at cron timezone set_by root call_id status",
      "roots": "id",
      "runs": "id status continuity ended_by events roots space_ids rests active_space_id outcome receipts person correction lease",
      "secret_uses": "name kind by host cause",
      "seen_events": "event_id",
      "spaces": "id acknowledged",
      "summaries": "subject",
      "timers": "name",
      "waits": "call_id space_id root",
      "windows": "instructions toolset continuity",
    }
  `);
});
