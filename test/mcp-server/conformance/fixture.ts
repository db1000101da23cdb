import { serveMcp } from "../../../src/mcp-server/serve.ts";
import { fixedTools, type Tool, type Toolset } from "../../../src/mcp-server/toolset.ts";
import { ColloquyError } from "../../../src/shared/errors.ts";

/** The tools and resources that the public conformance suite asks of a server, as far as `/mcp` can have such. */
const none = { type: "object" as const, properties: {} };

const tool = (name: string, call: Tool["call"], inputSchema: Tool["inputSchema"] = none): Tool => ({
  ...{ name, title: name, description: `For the check ${name}`, inputSchema },
  annotations: { openWorldHint: false },
  call,
});

/** As the check of JSON Schema 2020-12 wants it back. */
const fullSchema = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object" as const,
  $defs: {
    address: {
      $anchor: "addressDef",
      type: "object",
      properties: { street: { type: "string" }, city: { type: "string" } },
    },
  },
  properties: {
    name: { type: "string" },
    address: { $ref: "#/$defs/address" },
    contactMethod: { type: "string", enum: ["phone", "email"] },
    phone: { type: "string" },
    email: { type: "string" },
  },
  allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
  if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
  // biome-ignore lint/suspicious/noThenProperty: a word of JSON Schema
  then: { required: ["phone"] },
  else: { required: ["email"] },
  additionalProperties: false,
};

const text = (uri: string, text: string) => ({ uri, name: uri, mimeType: "text/plain", text });
const resources = [text("test://static-text", "This is the content of the static text resource.")];
const template = /^test:\/\/template\/([^/]+)\/data$/;

const toolset: Toolset = {
  instructions: "For conformance alone",
  ...fixedTools([
    tool("test_simple_text", async () => "This is a simple text response for testing."),
    // Those that do more ask the client, or log to it.
    tool("test_streaming_elicitation", async () => "Nothing is asked"),
    tool("test_logging_tool", async () => "Nothing is logged"),
    tool("test_error_handling", async () => {
      throw new ColloquyError("invalid_request", "This tool intentionally returns an error for testing");
    }),
    tool("test_tool_with_progress", async (_, { progress }) => {
      for (const message of ["Begun", "Half done", "Done"]) progress(message);
      return "Done";
    }),
    tool("json_schema_2020_12_tool", async () => "Done", fullSchema),
  ]),
  resources: {
    templates: [
      { uriTemplate: "test://template/{id}/data", name: "template", description: "Any", mimeType: "application/json" },
    ],
    list: async () => ({ resources: resources.map(({ text: _, ...resource }) => resource) }),
    read: async (_, uri) => {
      const id = template.exec(uri)?.[1];
      if (id === undefined) return resources.find((each) => each.uri === uri);
      const json = { id, templateTest: true, data: `Data for ID: ${id}` };
      return { mimeType: "application/json", text: JSON.stringify(json) };
    },
  },
};

const refuse = async (): Promise<never> => {
  throw new Error("the fixture asks no API");
};

/** Loopback alone: another host or origin is a page of elsewhere that found its way here. */
const isOwn = (address: string | null): boolean =>
  address === null || ["localhost", "127.0.0.1", "[::1]"].includes(URL.parse(address)?.hostname ?? "");

export const answerFixture = async (request: Request): Promise<Response> => {
  const { headers, method } = request;
  if (!isOwn(headers.get("origin")) || !isOwn(`http://${headers.get("host") ?? "localhost"}`)) {
    return new Response(null, { status: 403 });
  }
  if (method !== "POST") return new Response(null, { status: 405, headers: { allow: "POST" } });
  return serveMcp({ request, body: undefined, toolset, ask: refuse });
};
