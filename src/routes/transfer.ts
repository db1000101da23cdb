import { createHash } from "node:crypto";
import * as z from "zod";
import type { AgentConfig } from "../protocol/agent.ts";
import type { AgentRpc, ExportPage, ImportName } from "../protocol/agent-rpc.ts";
import { actorOf } from "../protocol/audit.ts";
import { type ExportedHead, ExportedLine, exportMediaType, ImportedAgent } from "../protocol/exported-agent.ts";
import { noteReading } from "../protocol/last-release.ts";
import { Name } from "../protocol/text.ts";
import { ColloquyError, ok, unwrap } from "../shared/errors.ts";
import { log } from "../shared/log.ts";
import { requireStill } from "./access.ts";
import { checkModels, checkSends, missingIn, modelsOf, secretsNamed, sendsOf } from "./check-references.ts";
import { type AskedAgent, agentAt, type HttpContext, workspaceOf } from "./http-context.ts";
import { idempotently, idUnder } from "./idempotent.ts";
import { pathId } from "./path-parameters.ts";
import { Resource } from "./route.ts";
import {
  type Arrived,
  bytesOf,
  importPages,
  maxImportBytes,
  readLines,
  readVersion1,
  tooLarge,
} from "./transfer-document.ts";

export const importPath = "/v1/imports";

/** Export and import of an agent, as lines of JSON. */
export const transfer = new Resource("Agents");

/** Throws once the caller would not be let in any more: a document may take its time. */
const requireCaller = (context: HttpContext): Promise<void> => requireStill(context, "workspace");

/** The export from its first page on. Each page is asked for once the one before was taken. */
const pagesFrom = async function* (
  context: HttpContext,
  agent: AskedAgent,
  first: ExportPage,
): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder();
  yield encoder.encode(first.text);
  for (let { next } = first; next; ) {
    await requireCaller(context);
    const page = await agent.exportPage(next);
    yield encoder.encode(page.text);
    next = page.next;
  }
};

transfer.route("GET /v1/agents/{agentId}/export", {
  summary: "An agent as lines of JSON",
  description:
    "All that it needs to know what it did and why: config, memories, goals, plans, runs with their journal, summaries, blocks with their history, archival entries. The first line is the head, each further line a row, and the last says how many lines come before it: without it the document was cut. No secret is in it, nothing that is under way, and nothing from confidential spaces: `left` counts what is not. Written as it is read, of any size.",
  access: "workspace",
  params: { agentId: pathId("ent", "the agent: its entity id") },
  responses: {
    200: {
      description: "The agent, as `POST /v1/imports` takes it",
      content: { [exportMediaType]: { schema: ExportedLine } },
    },
  },
  problems: ["not_found"],
  handle: async ({ context, agent, principal, params: { agentId } }) => {
    const first = await agent.exportPage(null);
    const note = { action: "agent.exported", actor: actorOf(principal), target: agentId } as const;
    await noteReading(workspaceOf(context), note);
    return new Response(pagesFrom(context, agent, first), {
      headers: {
        "content-type": exportMediaType,
        "content-disposition": `attachment; filename="${agentId}.ndjson"`,
      },
    });
  },
});

/** How far an import has come in its object; `there`: an earlier try has made the agent. */
type Staging = { id: string; name: ImportName; begun?: "begun" | "there" };

/** Reads the document into the new agent's object, page by page. Answers its head. */
const stage = async (agent: AgentRpc, staging: Staging, lines: AsyncIterable<Arrived>): Promise<ExportedHead> => {
  const { id, name } = staging;
  let found: ExportedHead | undefined;
  // Leaving the loop early cancels the body.
  for await (const { rows, head } of importPages(lines)) {
    staging.begun ??= unwrap(await agent.beginImport(id, name));
    if (staging.begun === "begun") unwrap(await agent.importRows(name, rows));
    found ??= head;
  }
  if (!found) throw new Error("a document that was read to its end has a head");
  return found;
};

/** Refuses a config that could never work here. Missing secrets and people are reported instead. */
const checkConfig = async (context: HttpContext, agent: AgentRpc, config: AgentConfig): Promise<void> => {
  const secretNames = async () => ok(secretsNamed(config));
  await checkModels(context.env, { secretNames }, modelsOf(config));
  await checkSends(context.var.principal, workspaceOf(context), sendsOf(config, modelsOf(config)));
  unwrap(await agent.check(config));
};

/** The lines of the request's document, in the format that its content type names. */
const linesOf = (context: HttpContext, bytes: AsyncIterable<Uint8Array>): AsyncIterable<Arrived> => {
  const type = (context.req.header("content-type") ?? "").split(";")[0]?.trim().toLowerCase() ?? "";
  if (type === exportMediaType) return readLines(bytes);
  if (/^application\/([a-z.-]+\+)?json$/.test(type)) return readVersion1(bytes);
  throw new ColloquyError(
    "invalid_json",
    `Send an exported agent, with content-type: ${exportMediaType} (application/json, if it is of version 1).`,
  );
};

transfer.route(`POST ${importPath}`, {
  summary: "Make an agent of an exported one",
  description: `It is a new agent, of this workspace, that knows what the old one did: all of it or nothing. It is in no space, shares no block, and has a day's budget of its own; plans whose time has passed fire once. The document is taken as what the agent remembers, so import what you trust. At most ${maxImportBytes} bytes. A refusal names the line and the field. As \`application/json\`, a document of version 1 is still taken, for this version.`,
  access: "workspace",
  query: z.object({
    name: Name.optional().meta({ description: "What the agent is called here, if not as it was" }),
  }),
  ownBody: {
    [exportMediaType]: { schema: ExportedLine },
    "application/json": {
      schema: z
        .looseObject({ format: z.literal("colloquy.agent"), version: z.literal(1) })
        .meta({ deprecated: true, description: "An agent that was exported before version 2" }),
    },
  },
  idempotent: true,
  status: 201,
  answers: [ImportedAgent, "The agent, and what is still to be done by hand"],
  problems: ["name_taken", "limit_reached", "unknown_reference", "text_too_long", "gone"],
  handle: async ({ context, principal, workspaceId, query }) => {
    const { body, headers } = context.req.raw;
    if (Number(headers.get("content-length") ?? 0) > maxImportBytes) {
      throw tooLarge("The import", maxImportBytes, "maxImportBytes");
    }
    if (!body) throw new ColloquyError("invalid_json", "The body is empty: send an exported agent.");
    const hash = createHash("sha256");
    const lines = linesOf(context, bytesOf(body, hash));
    const workspace = workspaceOf(context);
    const id = idUnder(context, "ent");
    const name: ImportName = { workspaceId, token: context.var.ids.mint("key") };
    const agent = agentAt(context, id);
    const staging: Staging = { id, name };
    try {
      const head = await stage(agent, staging, lines);
      await requireCaller(context);
      const isThere = staging.begun === "there";
      const config = { ...head.agent.config, name: query.name ?? head.agent.config.name };
      const request = { sha256: hash.digest("hex"), name: query.name ?? null };
      return await idempotently(context, { body: request, schema: ImportedAgent }, async () => {
        if (!isThere) {
          await checkConfig(context, agent, config);
          unwrap(await agent.prepareImport(name, { ...head, agent: { ...head.agent, config } }));
          // From here on it counts, whatever is cut: the object's own timer completes what the directory knows.
          unwrap(await workspace.createAgentEntity(id, config.name, actorOf(principal)));
        }
        const completed = await agent.completeImport(workspaceId);
        if (!completed.ok && !isThere) unwrap(await workspace.removeEntity(id));
        const { agent: made, report } = unwrap(completed);
        return { agent: made, imported: { ...report, ...(await missingIn(workspace, config)) } };
      });
    } catch (error) {
      if (staging.begun === "begun") await drop(agent, name);
      throw error;
    }
  },
});

/** An import that cannot be deleted now is deleted by the object's own timer. */
const drop = (agent: AgentRpc, name: ImportName): Promise<unknown> =>
  agent.dropImport(name).catch((error: unknown) => log.error("import.not-dropped", error, { ...name }));
