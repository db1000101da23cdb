import type { AgentConfig } from "../../protocol/agent.ts";
import { type McpServer, mcpSeparator, type ToolConfig, type ToolRule } from "../../protocol/tool.ts";
import { inOneBudget } from "../../shared/check-budget.ts";
import { schemaProblems } from "../../shared/check-json-schema.ts";
import { ColloquyError, type Issue } from "../../shared/errors.ts";
import { checkOutgoing } from "../../shared/outgoing.ts";
import { maxToolsBytes } from "../bounds.ts";
import { headerIssues, partsOf, templateIssues } from "./configured/request-template.ts";
import { builtinTool, findTool } from "./registry.ts";
import { ruleIssues } from "./rules.ts";

/** Faults of a config's tools beyond its shape. They are told when it is set, not when a tool is first called. */
type Options = {
  /** In development only. */
  allowLoopback: boolean;
};

const maxOutputBytes = 16 * 1024;

const bytesOf = (value: unknown): number => new TextEncoder().encode(JSON.stringify(value) ?? "").length;

const under = (path: string, issues: Issue[]): Issue[] =>
  issues.map((issue) => ({ ...issue, path: issue.path === "" ? path : `${path}.${issue.path}` }));

const schemaIssues = (path: string, schema: unknown, ofObject: boolean): Issue[] =>
  under(path, schemaProblems(schema, { ofObject }));

/** The issues of what only tools of its kind have. */
const kindIssues = (tool: ToolConfig, options: Options): Issue[] => {
  switch (tool.executionType) {
    case "gateway":
    case "external":
      return tool.execution ? under("execution", templateIssues(tool.execution, options)) : [];
    case "space":
      return tool.answer.schema === undefined ? [] : schemaIssues("answer.schema", tool.answer.schema, false);
    case "internal":
      return bytesOf(tool.output) <= maxOutputBytes
        ? []
        : [{ path: "output", message: `must be at most ${maxOutputBytes} bytes (maxOutputBytes)` }];
  }
};

const toolIssues = (tool: ToolConfig, options: Options): Issue[] => [
  ...(builtinTool(tool.name) ? [{ path: "name", message: "is the name of a tool that every agent has" }] : []),
  ...schemaIssues("inputSchema", tool.inputSchema, true),
  ...kindIssues(tool, options),
];

/** Whether a rule may name it: MCP servers tell their tools later, so of those the server's name is all that is known. */
const isTool = (config: AgentConfig, name: string): boolean =>
  findTool(name, config) !== undefined ||
  config.mcp.servers.some((server) => name.startsWith(server.name + mcpSeparator));

const unknownIn = (config: AgentConfig, rule: ToolRule): Issue[] => {
  const message = "is no tool of this agent";
  const named =
    rule.rule === "requires_prior" ? rule.tools.map((name, index) => ({ name, path: `tools.${index}` })) : [];
  return [{ name: rule.tool, path: "tool" }, ...named]
    .filter(({ name }) => !isTool(config, name))
    .map(({ path }) => ({ path, message }));
};

const serverIssues = ({ url, headers }: McpServer, options: Options): Issue[] => {
  const verdict = checkOutgoing(url, options);
  const inputs = Object.entries(headers).filter(([, text]) => partsOf(text).some(({ kind }) => kind === "input"));
  const message = "cannot hold {{input.…}}: it is sent with every request";
  return [
    ...(verdict.ok ? [] : [{ path: "url", message: `cannot be used: ${verdict.reason}` }]),
    ...headerIssues(headers),
    ...inputs.map(([name]) => ({ path: `headers.${name}`, message })),
  ];
};

/** The config itself. Throws `invalid_request` with an issue for each thing that is wrong, by its path. */
export const checkedConfig = (config: AgentConfig, options: Options): AgentConfig => {
  const issues = [
    ...inOneBudget(() => config.tools.flatMap((tool, index) => under(`tools.${index}`, toolIssues(tool, options)))),
    ...config.toolRules.flatMap((rule, index) => under(`toolRules.${index}`, unknownIn(config, rule))),
    ...under("toolRules", ruleIssues(config.toolRules)),
    ...config.mcp.servers.flatMap((server, index) => under(`mcp.servers.${index}`, serverIssues(server, options))),
  ];
  if (bytesOf(config.tools) > maxToolsBytes) {
    issues.push({ path: "tools", message: `must be at most ${maxToolsBytes} bytes together (maxToolsBytes)` });
  }
  if (issues.length === 0) return config;
  throw new ColloquyError("invalid_request", "the agent's tools cannot be used as they are written", { issues });
};
