import type * as z from "zod";
import { ColloquyError, Problem, unwrap } from "../shared/errors.ts";
import { issuesOf } from "../shared/issues.ts";

/**
 * The words of the MCP server. Each kind of caller is offered one toolset; a tool asks the HTTP API as its caller, so
 * that rights, rates and bounds are those of the routes.
 */
export type JsonObject = Record<string, unknown>;

/** A request to this deployment's own API. */
export type ApiRequest = {
  method: string;
  /** With its query. */
  path: string;
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
};

/** Asks the API by the credentials of the MCP request. */
export type AskApi = (request: ApiRequest) => Promise<Response>;

/** What a call may use while it lasts. */
export type Surroundings = {
  ask: AskApi;
  /** The client has given up the call, or is gone. */
  signal: AbortSignal;
  /** Tells the client that the call goes on, where it wants to know. */
  progress: (message: string) => void;
};

export type Tool = {
  name: string;
  title: string;
  description: string;
  /** JSON Schema of an object. */
  inputSchema: JsonObject & { type: "object" };
  annotations: { readOnlyHint?: boolean; destructiveHint?: boolean; idempotentHint?: boolean; openWorldHint: false };
  /** Answers with JSON; a text stands as it is. Throws `ColloquyError`s, which the client is told as the tool's error. */
  call: (input: JsonObject, surroundings: Surroundings) => Promise<unknown>;
};

/** What clients may read by an address. */
export type Resources = {
  templates: { uriTemplate: string; name: string; description: string; mimeType: string }[];
  list(ask: AskApi, cursor: string | undefined): Promise<ResourcePage>;
  /** Undefined for an address that is none of these. */
  read(ask: AskApi, uri: string): Promise<{ mimeType: string; text: string } | undefined>;
};
type ResourcePage = { resources: { uri: string; name: string; mimeType: string }[]; nextCursor?: string };

export type Toolset = {
  /** How the tools belong together, for a model. */
  instructions: string;
  list(ask: AskApi): readonly Tool[] | Promise<readonly Tool[]>;
  find(name: string): Tool | undefined;
  resources: Resources;
};

/** Tools that are the same for each caller of a kind. */
export const fixedTools = (tools: readonly Tool[]): Pick<Toolset, "list" | "find"> => ({
  list: () => tools,
  find: (name) => tools.find((tool) => tool.name === name),
});

export const noResources: Resources = {
  templates: [],
  list: async () => ({ resources: [] }),
  read: async () => undefined,
};

/** The JSON of an answer; null where it has no body. A problem document is thrown. */
export const jsonOf = async (answer: Response): Promise<unknown> => {
  const text = await answer.text();
  const json: unknown = text === "" ? null : JSON.parse(text);
  if (answer.ok) return json;
  return unwrap({ ok: false, problem: Problem.parse(json) });
};

/** Asks for what a schema reads. */
export const askFor = async <Schema extends z.ZodType>(
  ask: AskApi,
  schema: Schema,
  path: string,
  request: Omit<ApiRequest, "path" | "method"> & { method?: string } = {},
): Promise<z.output<Schema>> => {
  const method = request.method ?? (request.body === undefined ? "GET" : "POST");
  return schema.parse(await jsonOf(await ask({ ...request, method, path })));
};

/** A tool's input as its schema reads it. */
export const inputOf = <Schema extends z.ZodType>(schema: Schema, input: unknown): z.output<Schema> => {
  const parsed = schema.safeParse(input);
  if (parsed.success) return parsed.data;
  const issues = issuesOf(parsed.error);
  const [first] = issues;
  const detail = `In the input: ${first?.path || "it"} ${first?.message ?? "is not as expected"}.`;
  throw new ColloquyError("invalid_request", detail, { issues });
};
