import { answerFixture } from "./fixture.ts";

/** The MCP server of the product over the suite's own tools, in workerd. */
export default {
  fetch: async (request: Request): Promise<Response> =>
    new URL(request.url).pathname === "/healthz" ? new Response("ok") : answerFixture(request),
};
