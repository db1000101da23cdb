import { z } from "zod";
import { docsPage } from "./docs-page.ts";
import { documentApi } from "./openapi.ts";
import { Resource, type Route } from "./route.ts";

const JsonDocument = z.record(z.string(), z.json());

/** The deployment's own routes. The document and its page are made once, at the first request. */
export const deploymentOf = (routes: Route[]): Resource => {
  const deployment = new Resource("Deployment");
  let document: string | undefined;
  let page: string | undefined;

  deployment.route("GET /healthz", {
    summary: "Whether the deployment answers",
    access: "public",
    answers: [z.object({ ok: z.literal(true) }), "It does"],
    handle: async () => ({ ok: true as const }),
  });

  deployment.route("GET /openapi.json", {
    summary: "This API as OpenAPI 3.1",
    access: "public",
    answers: [JsonDocument, "The document"],
    handle: async ({ context }) => {
      document ??= JSON.stringify(documentApi(routes));
      return context.body(document, 200, { "content-type": "application/json" });
    },
  });

  deployment.route("GET /docs", {
    summary: "This API as a page",
    access: "public",
    responses: { 200: { description: "The page", content: { "text/html": { schema: z.string() } } } },
    handle: async ({ context }) => {
      page ??= String(await docsPage(documentApi(routes)));
      return context.html(page, 200, {
        "content-security-policy":
          "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'",
      });
    },
  });

  return deployment;
};
