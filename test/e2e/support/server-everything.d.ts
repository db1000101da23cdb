/** The reference server ships no types of its own. */
declare module "@modelcontextprotocol/server-everything/dist/server/index.js" {
  import type { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
  export const createServer: () => { server: McpServer; cleanup: (sessionId?: string) => void };
}
