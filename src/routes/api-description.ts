/** The parts of the OpenAPI document that belong to no route. */
export const apiDescription = {
  title: "Colloquy",
  version: "1",
  description:
    "Spaces that people and AI agents share. Errors are RFC 9457 problem documents with a `code` of a closed list; lists answer `{items, nextCursor}`; every POST that creates takes `Idempotency-Key`. Pages of any origin may call it; a body nests at most 64 levels.",
};

export const securitySchemes = {
  operatorKey: { type: "http", scheme: "bearer", description: "The operator's ADMIN_KEY" },
  secretKey: {
    type: "http",
    scheme: "bearer",
    bearerFormat: "sk_<workspaceId>_<secret>",
    description: "A workspace's secret key. It acts as an entity with `X-Entity-Id: ent_…`.",
  },
  secretKeyHeader: { type: "apiKey", in: "header", name: "x-secret-key", description: "The same secret key" },
  entityToken: { type: "http", scheme: "bearer", bearerFormat: "JWT", description: "A token of POST /v1/tokens" },
  queryToken: {
    type: "apiKey",
    in: "query",
    name: "token",
    description: "For browsers, which cannot set headers here",
  },
} as const;

export const tags = [
  { name: "Workspace", description: "A tenant: entities, spaces, agents, keys and secrets that belong together." },
  { name: "Keys and secrets", description: "What opens the workspace, and what its models and tools may use." },
  { name: "Entities", description: "Who takes part: people, services, and agents." },
  { name: "Agents", description: "Participants that think by themselves. An agent's id is its entity id." },
  { name: "Inbox", description: "What came to an agent and waits, or was given up." },
  { name: "Webhooks", description: "How other systems reach an agent: signed, told apart, each delivery once." },
  { name: "Runs", description: "What an agent did with it, to the exact input of each step." },
  { name: "Blocks", description: "Documents that an agent keeps, shares, and edits with people." },
  { name: "Mind", description: "What an agent keeps: memories, goals and archival entries." },
  { name: "Search", description: "Finding again what was said, done and kept." },
  { name: "Plans", description: "When an agent wakes by itself: once, or again and again." },
  { name: "Spaces", description: "Shared timelines and their members." },
  { name: "Messages", description: "What was said, and how far it was read." },
  { name: "Tool calls", description: "What agents ask of people and of servers." },
  { name: "Stream", description: "A space, live." },
  { name: "Deployment", description: "About this deployment itself." },
];
