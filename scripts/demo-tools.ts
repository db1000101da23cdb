/** The tools of the demo's Steward, one for each way in which a call shows in a space. Nothing leaves this machine. */
const text = { type: "string", minLength: 1 };
const objectOf = (properties: Record<string, object>, required: string[]) => ({
  type: "object",
  properties,
  required,
  additionalProperties: false,
});

const aDay = 1440;

const deploy = {
  name: "deploy",
  description: "Deploys something. Two people of the space approve it first.",
  executionType: "internal",
  inputSchema: objectOf({ what: text, environment: { enum: ["staging", "production"] } }, ["what"]),
  output: { status: "deployed", note: "in this demo nothing is really deployed" },
  approval: { quorum: 2, expiresInMinutes: aDay },
};

const requestApproval = {
  name: "request_approval",
  description: "Asks the people of the space to approve something; one of them decides.",
  executionType: "internal",
  inputSchema: objectOf({ what: text }, ["what"]),
  output: { status: "approved" },
  approval: { expiresInMinutes: aDay },
};

const choose = {
  name: "choose",
  description: "Has somebody of the space choose one of some options.",
  executionType: "space",
  inputSchema: objectOf({ question: text, options: { type: "array", items: text, minItems: 2 } }, [
    "question",
    "options",
  ]),
  answer: { expiresInMinutes: aDay },
};

const form = {
  name: "form",
  description: "Has somebody of the space fill in a form; schema is a JSON Schema of what it asks for.",
  executionType: "space",
  inputSchema: objectOf({ question: text, schema: { type: "object" } }, ["question", "schema"]),
  answer: { expiresInMinutes: aDay },
};

const point = objectOf({ label: { type: "string" }, value: { type: "number" } }, ["label", "value"]);

const chart = {
  name: "chart",
  description: "Shows a chart in the space.",
  executionType: "internal",
  visible: true,
  inputSchema: objectOf(
    { type: { enum: ["bar", "line", "pie"] }, title: text, data: { type: "array", items: point, minItems: 1 } },
    ["type", "data"],
  ),
};

const table = {
  name: "table",
  description: "Shows a table in the space.",
  executionType: "internal",
  visible: true,
  inputSchema: objectOf(
    { columns: { type: "array", items: text, minItems: 1 }, rows: { type: "array", items: { type: "array" } } },
    ["columns", "rows"],
  ),
};

export const stewardTools = [deploy, requestApproval, choose, form, chart, table];
