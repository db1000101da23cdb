import { html, raw } from "hono/html";
import { anchorOf, fieldsOf, type Html, kindOf } from "./docs-schema.ts";
import { docsStyle } from "./docs-style.ts";
import type { ApiDocument, ApiOperation, ApiParameter } from "./openapi.ts";

/** /docs: the OpenAPI document as one page that needs no script and nothing from elsewhere. */
const slug = (name: string): string => name.toLowerCase().replaceAll(/[^a-z]+/g, "-");

const parametersList = (parameters: ApiParameter[]): Html =>
  parameters.length === 0
    ? html``
    : html`<h3>Parameters</h3>
        <ul class="fields">
          ${parameters.map(
            (one) => html`<li>
              <code class="name">${one.name}</code>${one.required ? html`<span class="required" title="required">*</span>` : ""}
              <span class="kind">${one.in} · ${kindOf(one.schema)}</span>
              ${one.description ? html`<p>${one.description}</p>` : ""}
            </li>`,
          )}
        </ul>`;

const inline = (text: string): Html =>
  html`${text.split("`").map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : part))}`;

const responsesList = (operation: ApiOperation): Html => html`<h3>Answers</h3>
  <ul class="fields">
    ${Object.entries(operation.responses).map(
      ([status, response]) => html`<li>
        <span class="status">${status}</span>
        ${Object.values(response.content ?? {}).map(({ schema }) => html`<span class="kind">${kindOf(schema)}</span>`)}
        <p>${inline(response.description)}</p>
        ${Object.values(response.content ?? {}).map(({ schema }) => fieldsOf(schema))}
      </li>`,
    )}
  </ul>`;

const bodyOf = (operation: ApiOperation): Html =>
  html`${Object.values(operation.requestBody?.content ?? {}).map(
    ({ schema }) => html`<h3>Body</h3>
      <p class="kind">${kindOf(schema)}</p>
      ${fieldsOf(schema)}`,
  )}`;

const operationBlock = (path: string, method: string, operation: ApiOperation): Html => html`<details
  id="${operation.operationId}"
>
  <summary>
    <span class="method ${method}">${method}</span><code>${path}</code><span class="what">${operation.summary}</span>
  </summary>
  <div class="body">
    ${operation.description ? html`<p>${inline(operation.description)}</p>` : ""}
    <p class="who">Who may: ${operation["x-who"]}</p>
    ${parametersList(operation.parameters)} ${bodyOf(operation)} ${responsesList(operation)}
  </div>
</details>`;

const tagSection = (document: ApiDocument, tag: { name: string; description: string }): Html => {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, operation]) => operation.tags.includes(tag.name))
      .map(([method, operation]) => operationBlock(path, method, operation)),
  );
  return html`<section aria-labelledby="${slug(tag.name)}">
    <h2 id="${slug(tag.name)}">${tag.name}</h2>
    <p>${tag.description}</p>
    ${operations}
  </section>`;
};

export const docsPage = (document: ApiDocument): Html => html`<!doctype html>
  <html lang="en">
    <head>
      <meta charset="utf-8" />
      <meta name="viewport" content="width=device-width, initial-scale=1" />
      <title>${document.info.title} API</title>
      <style>
        ${raw(docsStyle)}
      </style>
    </head>
    <body>
      <nav aria-label="Resources">
        <strong>${document.info.title} API</strong>
        <ul>
          ${document.tags.map(({ name }) => html`<li><a href="#${slug(name)}">${name}</a></li>`)}
          <li><a href="#schemas">Schemas</a></li>
          <li><a href="/openapi.json">openapi.json</a></li>
        </ul>
      </nav>
      <main>
        <h1>${document.info.title} API</h1>
        <p class="lead">${inline(document.info.description)}</p>
        ${document.tags.map((tag) => tagSection(document, tag))}
        <section aria-labelledby="schemas">
          <h2 id="schemas">Schemas</h2>
          <p>What goes in and out, by name. An asterisk marks what is always there.</p>
          ${Object.entries(document.components.schemas).map(
            ([name, schema]) => html`<details id="${anchorOf(name)}" open>
              <summary><code>${name}</code></summary>
              <div class="body">${kindOf(schema)} ${fieldsOf(schema)}</div>
            </details>`,
          )}
        </section>
      </main>
    </body>
  </html>`;
