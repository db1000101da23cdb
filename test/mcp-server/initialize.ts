/** The first message of a client of revision 2025-11-25. */
export const initialize = () => ({
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "test", version: "1" } },
});

const metadataPath = "/.well-known/oauth-protected-resource";
export const metadataPaths = [metadataPath, `${metadataPath}/mcp`];
