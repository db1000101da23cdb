import { createHash } from "node:crypto";
import * as z from "zod";
import { ringOf } from "../shared/secret-ring.ts";
import { docsPage } from "./docs-page.ts";
import type { HttpContext } from "./http-context.ts";
import { documentApi } from "./openapi.ts";
import { Resource, type Route } from "./route.ts";

/** Whoever asked once need not be sent it again: it changes with the deployment only. */
const cached = "public, max-age=300";

type Kept = { text: string; etag: string };
const keep = (text: string): Kept => ({ text, etag: `"${createHash("sha256").update(text).digest("base64url")}"` });

const answerKept = (context: HttpContext, { text, etag }: Kept, headers: Record<string, string>): Response => {
  const known = context.req
    .header("if-none-match")
    ?.split(/\s*,\s*/)
    .some((each) => each.replace(/^W\//, "") === etag);
  const all = { ...headers, etag, "cache-control": cached };
  return known ? context.body(null, 304, all) : context.body(text, 200, all);
};

/** A page's own styles as a policy names them: by what they are. */
const stylesOf = (html: string): string =>
  Array.from(html.matchAll(/<style>([\s\S]*?)<\/style>/g), ([, style = ""]) => {
    return `'sha256-${createHash("sha256").update(style).digest("base64")}'`;
  }).join(" ");

const Prints = z.object({
  ring: z.array(z.string()).describe("Of those that verify and open; the first one signs and seals"),
  ids: z.string().describe("Of the one that ids are made with, which never changes"),
});

const JsonDocument = z.record(z.string(), z.json());

/** The deployment's own routes. The document and its page are made once, at the first request. */
export const deploymentOf = (routes: Route[]): Resource => {
  const deployment = new Resource("Deployment");
  let document: Kept | undefined;
  let page: Kept | undefined;

  deployment.route("GET /healthz", {
    summary: "Whether the deployment answers",
    access: "public",
    description: "With the prints of its secrets, which tell nothing of them: `npm run deploy` compares them.",
    answers: [z.object({ ok: z.literal(true), secrets: Prints }), "It does"],
    handle: async ({ context }) => {
      const { secrets, ids } = ringOf(context.env);
      return { ok: true as const, secrets: { ring: secrets.map(({ print }) => print), ids: ids.print } };
    },
  });

  deployment.route("GET /openapi.json", {
    summary: "This API as OpenAPI 3.1",
    access: "public",
    answers: [JsonDocument, "The document"],
    handle: async ({ context }) => {
      document ??= keep(JSON.stringify(documentApi(routes)));
      return answerKept(context, document, { "content-type": "application/json" });
    },
  });

  deployment.route("GET /docs", {
    summary: "This API as a page",
    access: "public",
    responses: { 200: { description: "The page", content: { "text/html": { schema: z.string() } } } },
    handle: async ({ context }) => {
      page ??= keep(String(await docsPage(documentApi(routes))));
      return answerKept(context, page, {
        "content-type": "text/html; charset=UTF-8",
        "content-security-policy": `default-src 'none'; style-src ${stylesOf(page.text)}; base-uri 'none'; frame-ancestors 'none'`,
      });
    },
  });

  return deployment;
};
