import * as z from "zod";
import type { McpServer } from "../../../protocol/tool.ts";
import { quote } from "../../../shared/quote.ts";
import {
  maxMcpDescriptionCharacters,
  maxMcpLeftOut,
  maxMcpListBytes,
  maxMcpSchemaBytes,
  maxMcpTools,
} from "../../bounds.ts";
import type { LeftOut, McpTool } from "../../records.ts";
import { broughtTool, type CallContext, parseInput, schemaAsTold, type Tool } from "../tool.ts";

/** Names of tools that every provider takes. */
const sound = /^[A-Za-z0-9_-]{1,64}$/;
const maxCharacters = 64;

/** FNV-1a, 32 bits: tells names apart that were made alike. */
const mark = (text: string): string => {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash.toString(36).padStart(7, "0");
};

/**
 * The name that a model calls a server's tool by: `server__tool`. One that providers do not take is made sound, always
 * in the same way. A mark keeps it apart from the server's others.
 */
export const mcpToolName = (server: string, tool: string): string => {
  const name = `${server}__${tool}`;
  if (sound.test(name)) return name;
  const suffix = `_${mark(tool)}`;
  return `${name.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, maxCharacters - suffix.length)}${suffix}`;
};

const Listed = z.looseObject({
  name: z.string().min(1).max(128),
  title: z.string().optional(),
  description: z.string().optional(),
  inputSchema: z.looseObject({ type: z.literal("object") }),
  annotations: z.looseObject({ readOnlyHint: z.boolean(), idempotentHint: z.boolean() }).partial().optional(),
});
type Listed = z.infer<typeof Listed>;

const bytes = (value: unknown): number => new TextEncoder().encode(JSON.stringify(value)).length;

/** A server's text is quoted: it describes a tool, and instructs nobody. */
const descriptionOf = (server: string, { title, description }: Listed): string => {
  const said = (description ?? title ?? "").toWellFormed().trim();
  const from = `A tool of the MCP server "${server}"`;
  if (said === "") return `${from}.`;
  const cut = said.length > maxMcpDescriptionCharacters ? `${said.slice(0, maxMcpDescriptionCharacters)}…` : said;
  return `${from}, which describes it so: ${quote(cut)}`;
};

const nameOf = (raw: unknown): string => {
  const named = z.looseObject({ name: z.string() }).safeParse(raw);
  return named.success ? named.data.name.toWellFormed().slice(0, 128) : "(without a name)";
};

/** Names and schemas of strangers: nothing but JSON text may come of them. */
const wellFormed = (schema: Record<string, unknown>): Record<string, unknown> =>
  JSON.parse(JSON.stringify(schema, (_, held: unknown) => (typeof held === "string" ? held.toWellFormed() : held)));

/**
 * Which of a server's tools the agent has, in the server's order, and which not. The config chooses, within bounds that
 * a hostile server cannot pass. Pure.
 */
export const acceptTools = (
  { name: server, allowedTools }: Pick<McpServer, "name" | "allowedTools">,
  listed: unknown[],
): { tools: McpTool[]; leftOut: LeftOut[] } => {
  const tools: McpTool[] = [];
  const leftOut: LeftOut[] = [];
  let listBytes = 0;
  const refusal = (raw: unknown): string | undefined => {
    const parsed = Listed.safeParse(raw);
    if (!parsed.success) {
      const [issue] = parsed.error.issues;
      return `it is not described as a tool is: ${issue?.path.join(".")}: ${issue?.message}`;
    }
    const { data } = parsed;
    const size = bytes(data.inputSchema);
    if (size > maxMcpSchemaBytes) {
      return `its schema has ${size} bytes; at most ${maxMcpSchemaBytes} are taken (maxMcpSchemaBytes)`;
    }
    const tool: McpTool = {
      name: mcpToolName(server, data.name),
      server,
      tool: data.name,
      description: descriptionOf(server, data),
      inputSchema: wellFormed(data.inputSchema),
      idempotent: data.annotations?.readOnlyHint === true || data.annotations?.idempotentHint === true,
    };
    if (tools.some(({ name }) => name === tool.name)) return `another tool of the server is named ${tool.name} already`;
    const choose = "choose by allowedTools";
    if (tools.length >= maxMcpTools) return `a server may bring ${maxMcpTools} tools (maxMcpTools): ${choose}`;
    const next = listBytes + bytes(tool);
    if (next > maxMcpListBytes) {
      return `the server's tools would fill more than ${maxMcpListBytes} bytes (maxMcpListBytes): ${choose}`;
    }
    listBytes = next;
    tools.push(tool);
    return undefined;
  };
  for (const raw of listed) {
    const tool = nameOf(raw);
    if (allowedTools && !allowedTools.includes(tool)) continue;
    const reason = refusal(raw);
    if (reason !== undefined) leftOut.push({ tool, reason });
  }
  const had = new Set(listed.map(nameOf));
  for (const tool of allowedTools ?? []) {
    if (!had.has(tool)) leftOut.push({ tool, reason: "allowedTools names it, and the server has no such tool" });
  }
  const told = leftOut.slice(0, maxMcpLeftOut);
  if (told.length < leftOut.length)
    told.push({ tool: `${leftOut.length - told.length} more`, reason: "they are left out too" });
  return { tools, leftOut: told };
};

/** Whatever its schema says: the server that wrote it is the judge of it, and may change it. */
const Input = z.record(z.string(), z.unknown(), { error: "must be an object" });

type Call = (
  tool: McpTool,
  input: Record<string, unknown>,
  context: Pick<CallContext, "signal" | "root" | "begunAt" | "runId" | "callId">,
) => Promise<unknown>;

/** A server's tool as one of the agent's. */
export const mcpTool = (tool: McpTool, call: Call): Tool => {
  const schema = schemaAsTold(tool.inputSchema);
  return {
    ...broughtTool,
    name: tool.name,
    description: tool.description,
    effect: () => !tool.idempotent,
    idempotent: tool.idempotent,
    isTimed: true,
    schema: () => schema,
    check: (input) => void parseInput(Input, input),
    execute: async (input, context) => ({ value: await call(tool, parseInput(Input, input), context) }),
  };
};
