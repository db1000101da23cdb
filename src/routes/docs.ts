import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import { open } from "./access.ts";
import { docsPage } from "./docs-page.ts";
import { createRoutes, type House } from "./house.ts";
import { documentApi } from "./openapi.ts";
import { answers } from "./route-parts.ts";

const tags = ["Deployment"];
const JsonDocument = z.record(z.string(), z.json());

/** The document of `app`, and the page that shows it. Both are made once, when first asked for. */
export const docsOf = (app: OpenAPIHono<House>): OpenAPIHono<House> => {
  let document: z.infer<typeof JsonDocument> | undefined;
  let page: string | undefined;
  const docs = createRoutes();
  docs.openapi(
    createRoute({
      method: "get",
      path: "/openapi.json",
      tags,
      summary: "This API as OpenAPI 3.1",
      ...open,
      responses: { 200: answers(JsonDocument, "The document") },
    }),
    (context) => {
      document ??= JsonDocument.parse(JSON.parse(JSON.stringify(documentApi(app))));
      return context.json(document, 200);
    },
  );
  docs.openapi(
    createRoute({
      method: "get",
      path: "/docs",
      tags,
      summary: "This API as a page",
      ...open,
      responses: { 200: { description: "The page", content: { "text/html": { schema: z.string() } } } },
    }),
    async (context) => {
      page ??= String(await docsPage(documentApi(app)));
      return context.html(page, 200, {
        "content-security-policy":
          "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'",
      });
    },
  );
  return docs;
};
