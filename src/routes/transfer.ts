import { createHash } from "node:crypto";
import { z } from "zod";
import type { AgentConfig } from "../protocol/agent.ts";
import type { ImportName } from "../protocol/transfer-rpc.ts";
import { ExportedAgent, ImportedAgent } from "../protocol/exported-agent.ts";
import type { AgentRpc } from "../protocol/rpc.ts";
import { Name } from "../protocol/text.ts";
import { ColloquyError, ok, unwrap } from "../shared/errors.ts";
import { log } from "../shared/log.ts";
import { missingPeople, missingSecrets, secretsNamed } from "./transfer/named-in-config.ts";
import { DocumentReader, maxImportBytes, type ReadDocument, tooLarge } from "./transfer/import-reader.ts";
import { exportedText, streamOf } from "./transfer/write-document.ts";
import { checkModels } from "./check-references.ts";
import { agentAt, type HttpContext, workspaceOf } from "./http-context.ts";
import { idempotently, idUnder } from "./idempotent.ts";
import { pathId } from "./path-parameters.ts";
import { Resource } from "./route.ts";

export const importPath = "/v1/imports";

/** An agent as one document, out of a workspace and into one. */
export const carrying = new Resource("Agents");

carrying.route("GET /v1/agents/{agentId}/export", {
  summary: "An agent as one JSON document",
  description:
    "All that it needs to know what it did and why: config, memories, goals, plans, runs with their journal, summaries, blocks with their history, archival entries. No secret is in it, and nothing that is under way: `left` counts what is not. Written as it is read, of any size; what ends early is no JSON.",
  access: "workspace",
  params: { agentId: pathId("ent", "the agent: its entity id") },
  answers: [ExportedAgent, "The agent, as `POST /v1/imports` takes it"],
  problems: ["not_found"],
  handle: async ({ agent, workspaceId, params: { agentId } }) => {
    const head = unwrap(await agent.exportHead(workspaceId));
    return new Response(streamOf(exportedText(agent, workspaceId, head)), {
      headers: {
        "content-type": "application/json",
        "content-disposition": `attachment; filename="${agentId}.json"`,
      },
    });
  },
});

/** How far an import has come in its object; `there`: an earlier try has made the agent. */
type Staging = { id: string; name: ImportName; begun?: "begun" | "there" };

/** Reads the body into the new agent's object. Answers what is no list. */
const stage = async (
  context: HttpContext,
  agent: AgentRpc,
  staging: Staging,
  reader: DocumentReader,
): Promise<ReadDocument> => {
  const { body } = context.req.raw;
  if (!body) throw new ColloquyError("invalid_json", "The body is empty: send an exported agent.");
  const { id, name } = staging;
  // Leaving it early, for whatever reason, lets go of the body.
  for await (const page of reader.pages(body)) {
    staging.begun ??= unwrap(await agent.beginImport(id, name));
    if (staging.begun === "begun") unwrap(await agent.importItems(name, page));
  }
  return reader.document;
};

/** Throws what of a config could never work here. What it names and is not here is told, and refuses nothing. */
const checkConfig = async (context: HttpContext, agent: AgentRpc, config: AgentConfig): Promise<void> => {
  const { model, embedder, context: input } = config;
  const named = secretsNamed(config);
  await checkModels(
    context.env,
    { secretNames: async () => ok(named) },
    { model, embedder, summaries: input.compaction.model },
  );
  unwrap(await agent.check(config));
};

carrying.route(`POST ${importPath}`, {
  summary: "Make an agent of an exported one",
  description: `It is a new agent, of this workspace, that knows what the old one did: all of it or nothing. It is in no space, shares no block, and has a day's budget of its own; plans whose time has passed fire once. The document is taken as what the agent remembers, so import what you trust. At most ${maxImportBytes} bytes.`,
  access: "workspace",
  query: z.object({
    name: Name.optional().meta({ description: "What the agent is called here, if not as it was" }),
  }),
  ownBody: { mediaType: "application/json", schema: ExportedAgent },
  idempotent: true,
  status: 201,
  answers: [ImportedAgent, "The agent, and what is still to be done by hand"],
  problems: ["name_taken", "limit_reached", "unknown_reference", "text_too_long", "gone"],
  handle: async ({ context, workspaceId, query }) => {
    const workspace = workspaceOf(context);
    requireJson(context);
    const id = idUnder(context, "ent");
    const name: ImportName = { workspaceId, token: context.var.ids.mint("key") };
    const agent = agentAt(context, id);
    const staging: Staging = { id, name };
    const hash = createHash("sha256");
    try {
      const document = await stage(context, agent, staging, new DocumentReader(hash));
      const isThere = staging.begun === "there";
      const config = { ...document.head.config, name: query.name ?? document.head.config.name };
      const body = { sha256: hash.digest("hex"), name: query.name ?? null };
      return await idempotently(context, { body, schema: ImportedAgent }, async () => {
        if (!isThere) {
          await checkConfig(context, agent, config);
          unwrap(await agent.prepareImport(name, document.envelope, { ...document.head, config }));
          // From here on it counts, whatever is cut: the object's own timer completes what the directory knows.
          unwrap(await workspace.createAgentEntity(id, config.name));
        }
        const completed = await agent.completeImport(workspaceId);
        if (!completed.ok && !isThere) unwrap(await workspace.removeEntity(id));
        const { agent: made, report } = unwrap(completed);
        const [secrets, people] = [await missingSecrets(workspace, config), await missingPeople(workspace, config)];
        return { agent: made, imported: { ...report, secrets, people } };
      });
    } catch (error) {
      if (staging.begun === "begun") await drop(agent, name);
      throw error;
    }
  },
});

/** What cannot be put away now is put away by the object's own timer. */
const drop = (agent: AgentRpc, name: ImportName): Promise<unknown> =>
  agent.dropImport(name).catch((error: unknown) => log.error("import.not-dropped", error, { ...name }));

const requireJson = (context: HttpContext): void => {
  const { headers } = context.req.raw;
  if (!/^application\/([a-z-.]+\+)?json(;\s*[a-zA-Z0-9-]+=([^;]+))*$/.test(headers.get("content-type") ?? "")) {
    throw new ColloquyError("invalid_json", "Send the body as JSON, with content-type: application/json.");
  }
  if (Number(headers.get("content-length") ?? 0) > maxImportBytes) throw tooLarge();
};
