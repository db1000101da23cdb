import * as z from "zod";
import { entityId } from "./ids.ts";
import { component, Label, strictComponent, Timestamp } from "./text.ts";

/** A JSON Schema 2020-12, of an object for inputs; checked when the config is set, and never fetched from anywhere. */
const JsonSchema = z.record(z.string(), z.json());

/**
 * An HTTP request as a template: `{{input.x.y}}` may stand in path and query, header values and JSON body,
 * `${secret.NAME}` in all of them.
 */
export const HttpTemplate = strictComponent("HttpTemplate", {
  url: z.string().min(1).max(2048),
  method: z.enum(["GET", "POST", "PUT", "PATCH", "DELETE"]).default("POST"),
  headers: z.record(z.string().max(128), z.string().max(4096)).default({}),
  body: z.json().optional(),
});
export type HttpTemplate = z.infer<typeof HttpTemplate>;

const maxMinutes = 366 * 24 * 60;
const Approvers = z.array(entityId).min(1).max(50);

/** People who must agree before a tool runs. Without `approvers` every person of the space may. */
export const Approval = z
  .strictObject({
    required: z.boolean().default(true),
    approvers: Approvers.optional(),
    /** The number of different people who must approve; one rejection is enough to reject. */
    quorum: z.int().min(1).max(50).default(1),
    expiresInMinutes: z.int().min(1).max(maxMinutes).default(1440),
  })
  .refine(({ approvers, quorum }) => approvers === undefined || new Set(approvers).size >= quorum, {
    error: "needs at least as many different approvers as its quorum",
    path: ["quorum"],
  })
  .meta({ id: "Approval" });
export type Approval = z.infer<typeof Approval>;

/** The separator between a server's name and its tool's, in the name of an MCP tool. */
export const mcpSeparator = "__";

const plainName = Label.refine((name) => !name.includes(mcpSeparator), {
  error: `must not hold "${mcpSeparator}": it stands between an MCP server's name and its tool's`,
});

/** Left out: no run of a confidential space has it, so nothing that is said there can leave by it. */
const confidential = z.literal("allowed").optional();

const common = {
  name: plainName,
  description: z.string().min(1).max(2000),
  inputSchema: JsonSchema.default({ type: "object", properties: {} }),
  /** Shows as a `tool_call` message in the active space. Left out: true, but for `internal`. */
  visible: z.boolean().optional(),
  /** Answers `{"status":"pending"}` at once; the result comes through the inbox. */
  async: z.boolean().default(false),
  timeoutMs: z.int().min(100).max(600_000).default(30_000),
  /** It may run again when its outcome is unknown. */
  idempotent: z.boolean().default(false),
  confidential,
};

/** The fields of tools with an effect, which people may have to approve. */
const effective = { ...common, approval: Approval.optional() };

/** An HTTP request that the agent's own object makes. */
const GatewayTool = z.strictObject({ ...effective, executionType: z.literal("gateway"), execution: HttpTemplate });

/** Somebody's server does it: it is sent there, signed, or waits to be listed, claimed and answered. */
const ExternalTool = z.strictObject({
  ...effective,
  executionType: z.literal("external"),
  execution: HttpTemplate.pick({ url: true, headers: true })
    /** The workspace secret that signs what is sent (`whsec_…`). */
    .extend({ secret: Label })
    .optional(),
});

/** A member answers it in the space. */
const SpaceTool = z.strictObject({
  ...common,
  executionType: z.literal("space"),
  /** It would change nothing: `answer.expiresInMinutes` says how long people have. */
  timeoutMs: z.never("has no effect on a tool of type space: set answer.expiresInMinutes instead").optional(),
  answer: z
    .strictObject({
      /** The people who may answer; everyone in the space if left out. */
      by: Approvers.optional(),
      /** The JSON Schema of an answer. */
      schema: JsonSchema.optional(),
      expiresInMinutes: z.int().min(1).max(maxMinutes).default(10),
    })
    .default({ expiresInMinutes: 10 }),
});

/** Runs nowhere: answers `output`, or its input. */
const InternalTool = z.strictObject({
  ...effective,
  executionType: z.literal("internal"),
  output: z.json().optional(),
});

export const ToolConfig = z
  .discriminatedUnion("executionType", [GatewayTool, ExternalTool, SpaceTool, InternalTool])
  .meta({ id: "ToolConfig" });
export type ToolConfig = z.infer<typeof ToolConfig>;

const ruled = { tool: Label };

/** A rule for the model, told in its instructions and enforced: a call that breaks it is refused. */
export const ToolRule = z
  .discriminatedUnion("rule", [
    z.strictObject({ ...ruled, rule: z.literal("exit_loop") }),
    z.strictObject({ ...ruled, rule: z.literal("continue_loop") }),
    z.strictObject({ ...ruled, rule: z.literal("max_calls"), count: z.int().min(1).max(1000) }),
    z.strictObject({ ...ruled, rule: z.literal("requires_prior"), tools: z.array(Label).min(1).max(20) }),
    z.strictObject({ ...ruled, rule: z.literal("start_constraint") }),
    z.strictObject({ ...ruled, rule: z.literal("required_before_exit") }),
  ])
  .meta({ id: "ToolRule" });
export type ToolRule = z.infer<typeof ToolRule>;

export const McpServer = strictComponent("McpServer", {
  name: plainName.max(32),
  url: z.string().min(1).max(2048),
  headers: z.record(z.string().max(128), z.string().max(4096)).default({}),
  /** All that the server has, if left out. */
  allowedTools: z.array(z.string().min(1).max(128)).max(200).optional(),
  /** The most that one call of its tools may take. */
  timeoutMs: z.int().min(100).max(60_000).default(30_000),
  confidential,
});
export type McpServer = z.infer<typeof McpServer>;

/** Refuses a list in which two have the same name. */
const uniqueNames = <Named extends { name: string }>(list: z.ZodType<Named[]>) =>
  list.superRefine((items, context) => {
    const seen = new Set<string>();
    for (const [index, { name }] of items.entries()) {
      if (seen.has(name)) context.addIssue({ code: "custom", path: [index, "name"], message: "is there twice" });
      seen.add(name);
    }
  });

export const ToolConfigs = uniqueNames(z.array(ToolConfig).max(64));

const EarlierSpaceTool = z
  .looseObject({ executionType: z.literal("space"), timeoutMs: z.unknown() })
  .transform(({ timeoutMs: _, ...tool }) => tool);
const EarlierTools = z.looseObject({ tools: z.array(z.union([EarlierSpaceTool, z.unknown()])) });

/** A stored or exported config. Earlier versions kept a `timeoutMs`, which did nothing, with each tool of type `space`. */
export const withoutIdleTimeouts = <Config>(config: Config): Config =>
  // Only a field that the config's type does not have is taken away.
  (EarlierTools.safeParse(config).data ?? config) as Config;

export const ToolRules = z.array(ToolRule).max(64);

/** A tool's name is the server's, two underlines and its own: one more underline could be of either. */
const aparts = (servers: z.ZodType<McpServer[]>) =>
  servers.superRefine((all, context) => {
    const names = new Set(all.map(({ name }) => name));
    for (const [index, { name }] of all.entries()) {
      if (!name.endsWith("_") || !names.has(name.slice(0, -1))) continue;
      const message = `is another server's with "_" behind it: a tool of one could pass for one of the other. Choose another name`;
      context.addIssue({ code: "custom", path: [index, "name"], message });
    }
  });

export const McpServers = strictComponent("McpServers", { servers: aparts(uniqueNames(z.array(McpServer).max(8))) });

/** The state of an agent's MCP server. */
export const McpStatus = component("McpStatus", {
  name: z.string(),
  /** `pending` until it was asked for the first time; a failing one is asked again at `nextTryAt`. */
  state: z.enum(["pending", "ok", "failing"]),
  /** As the model calls them. While a server fails they are those that it had. */
  tools: z.array(z.string()),
  /** Its tools that the agent does not get, and why. */
  leftOut: z.array(z.object({ tool: z.string(), reason: z.string() })),
  /** The revision of the protocol that is spoken with it. */
  protocolVersion: z.string().optional(),
  fetchedAt: Timestamp.optional(),
  failingSince: Timestamp.optional(),
  nextTryAt: Timestamp.optional(),
  lastError: z.object({ code: z.string(), message: z.string() }).optional(),
});
export type McpStatus = z.infer<typeof McpStatus>;
