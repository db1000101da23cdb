import * as z from "zod";
import { AuditEntry, actorOf, auditFilters } from "../protocol/audit.ts";
import { exportMediaType } from "../protocol/exported-agent.ts";
import type { WorkspaceRpc } from "../protocol/rpc.ts";
import { unwrap } from "../shared/errors.ts";
import { workspaceOf } from "./http-context.ts";
import { Resource } from "./route.ts";
import { badPage, listOf, pageQuery } from "./route-parts.ts";

const Filters = z.object(auditFilters);
/** Entries that an export asks for at a time. */
const exportedAtOnce = 500;

/** Who did what in the workspace. */
export const audit = new Resource("Workspace");

audit.route("GET /v1/workspace/audit", {
  summary: "The audit log, newest first",
  description:
    "Keys, tokens and sign-in links made for others, sign-ins, roles, removals, secrets, approvals, admins' reads of spaces that they are not in and of what agents keep, deletions, exports and imports, settings, and what the operator did. Ids and names of settings, never words that somebody said. A token for the same entity, and a read of the same space, is noted once an hour. At most 100,000 entries of the last 400 days: where it is full the oldest of the act that it holds most of leave, and `audit.pruned` says how many.",
  access: "workspace",
  query: pageQuery().extend(auditFilters),
  answers: [listOf(AuditEntry), "A page"],
  problems: badPage,
  handle: async ({ context, query }) => unwrap(await workspaceOf(context).audit(query)),
});

/** Lines of the log, page by page: the next is asked for once the one before was taken. */
const lines = async function* (workspace: WorkspaceRpc, filters: z.output<typeof Filters>): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder();
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page = unwrap(await workspace.audit({ ...filters, limit: exportedAtOnce, cursor }));
    yield encoder.encode(page.items.map((entry) => `${JSON.stringify(entry)}\n`).join(""));
    cursor = page.nextCursor;
  }
};

audit.route("GET /v1/workspace/audit/export", {
  summary: "The audit log as lines of JSON, newest first",
  description: "As `GET /v1/workspace/audit` filters it, whole. The export is noted too, as its own first line.",
  access: "workspace",
  query: Filters,
  responses: {
    200: { description: "The entries", content: { [exportMediaType]: { schema: AuditEntry } } },
  },
  problems: ["invalid_request"],
  handle: async ({ context, principal, workspaceId, query }) => {
    const workspace = workspaceOf(context);
    unwrap(await workspace.noteAudit({ action: "audit.exported", actor: actorOf(principal), target: workspaceId }));
    const headers = {
      "content-type": exportMediaType,
      "content-disposition": `attachment; filename="${workspaceId}.audit.ndjson"`,
    };
    return new Response(lines(workspace, query), { headers });
  },
});
