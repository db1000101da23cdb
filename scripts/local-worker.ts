import app from "../src/worker.ts";

export { Agent, Endpoint, Person, Space, Workspace } from "../src/worker.ts";

/**
 * The product's worker on this machine. It answers only requests to a name of this machine. Otherwise a page elsewhere
 * could reach it under its own name (DNS rebinding). The local runtime does the same for its own paths.
 */
const ownNames = ["127.0.0.1", "localhost", "[::1]"];

export default {
  fetch(request, env, context) {
    if (ownNames.includes(new URL(request.url).hostname)) return app.fetch(request, env, context);
    return new Response("Invalid Host header: this server answers to localhost only.\n", { status: 403 });
  },
} satisfies ExportedHandler<Parameters<typeof app.fetch>[1]>;
