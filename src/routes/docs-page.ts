import { html, raw } from "hono/html";
import type { HtmlEscapedString } from "hono/utils/html";
import { type ApiDocument, type ApiOperation, type ApiParameter, componentPath, type JsonSchema } from "./openapi.ts";

type Html = HtmlEscapedString | Promise<HtmlEscapedString>;

/** The look of /docs: no script, no font, nothing from elsewhere. */
const docsStyle = `
:root { color-scheme: light dark; --ink: #1c1b22; --soft: #65636f; --line: #e3e1ea; --paper: #fff; --raised: #f7f6fa;
  --accent: #5b3df5; --get: #0b6e4f; --post: #2457c5; --put: #8a5a00; --patch: #7b3fb5; --delete: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #eceaf3; --soft: #a29fb0; --line: #34323d; --paper: #16151a;
  --raised: #1f1e25; --accent: #a795ff; --get: #5fd3a7; --post: #8db4ff; --put: #f0bf6a; --patch: #d0a5ff; --delete: #ff9d94; } }
* { box-sizing: border-box; }
html { scroll-behavior: smooth; scroll-padding-top: 1rem; }
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; display: grid;
  grid-template-columns: 15rem minmax(0, 1fr); }
nav { position: sticky; top: 0; align-self: start; height: 100vh; overflow-y: auto; padding: 2rem 1.25rem;
  border-right: 1px solid var(--line); background: var(--raised); }
nav strong { font-size: 1.15rem; letter-spacing: -0.01em; }
nav ul { list-style: none; margin: 1.25rem 0 0; padding: 0; }
nav li a { display: block; padding: 0.2rem 0; color: var(--soft); text-decoration: none; }
nav li a:hover, nav li a:focus-visible { color: var(--accent); }
main { padding: 2.5rem clamp(1rem, 4vw, 4rem) 6rem; max-width: 64rem; }
h1 { margin: 0 0 0.5rem; font-size: 2rem; letter-spacing: -0.02em; }
h2 { margin: 3rem 0 0.25rem; font-size: 1.3rem; letter-spacing: -0.01em; }
h3 { margin: 1.25rem 0 0.25rem; font-size: 0.8rem; text-transform: uppercase; letter-spacing: 0.06em; color: var(--soft); }
p { margin: 0.35rem 0; } .lead, h2 + p { color: var(--soft); }
a { color: var(--accent); } code { font: 0.9em ui-monospace, monospace; overflow-wrap: anywhere; }
details { border: 1px solid var(--line); border-radius: 0.6rem; margin: 0.6rem 0; background: var(--paper); }
details[open] { background: var(--raised); }
summary { cursor: pointer; padding: 0.6rem 0.9rem; display: flex; flex-wrap: wrap; gap: 0.15rem 0.75rem; align-items: baseline;
  list-style: none; border-radius: 0.6rem; }
summary::-webkit-details-marker { display: none; }
summary:hover { background: var(--raised); } :focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
summary .what { color: var(--soft); flex: 1 1 16rem; }
.method { font: 700 0.75rem ui-monospace, monospace; width: 3.9rem; text-transform: uppercase; }
.get { color: var(--get); } .post { color: var(--post); } .put { color: var(--put); } .patch { color: var(--patch); }
.delete { color: var(--delete); }
.body { padding: 0 0.9rem 0.9rem; }
.who { font-size: 0.85rem; color: var(--soft); }
ul.fields { list-style: none; margin: 0.25rem 0; padding: 0 0 0 0.9rem; border-left: 2px solid var(--line); }
ul.fields li { padding: 0.25rem 0; } .name { font-weight: 650; } .required { color: var(--delete); margin-left: 0.1rem; }
.kind, .bounds { color: var(--soft); font-size: 0.9rem; margin-left: 0.4rem; } .fields p { font-size: 0.9rem; color: var(--soft); }
.status { font: 650 0.9rem ui-monospace, monospace; }
@media (max-width: 48rem) { body { display: block; } nav { position: static; height: auto; border-right: 0;
  border-bottom: 1px solid var(--line); padding: 1.25rem; } nav ul { display: flex; flex-wrap: wrap; gap: 0 1rem; } }
`;

const anchorOf = (component: string): string => `schema-${component}`;

const alternatives = (parts: Html[]): Html =>
  html`${parts.flatMap((part, index) => (index === 0 ? [part] : [" | ", part]))}`;

const choicesOf = ({ anyOf, oneOf }: JsonSchema): JsonSchema[] => anyOf ?? oneOf ?? [];

/** A schema that stands in another one. */
const inner = (held: JsonSchema["items"]): JsonSchema => (typeof held === "object" && !Array.isArray(held) ? held : {});

/** The kind of a value in a few words; components are links. */
const kindOf = (schema: JsonSchema): Html => {
  const { $ref, items, additionalProperties } = schema;
  if ($ref !== undefined) {
    const name = $ref.slice(componentPath.length);
    return html`<a href="#${anchorOf(name)}">${name}</a>`;
  }
  if (schema.const !== undefined) return html`<code>${JSON.stringify(schema.const)}</code>`;
  if (schema.enum) return alternatives(schema.enum.map((value) => html`<code>${JSON.stringify(value)}</code>`));
  const choices = choicesOf(schema);
  if (choices.length > 0) return alternatives(choices.map(kindOf));
  if (items !== undefined) return html`array of ${kindOf(inner(items))}`;
  if (typeof additionalProperties === "object" && !schema.properties) {
    return html`map of ${kindOf(additionalProperties)}`;
  }
  if (schema.type === undefined) return html`any JSON`;
  return html`${[schema.type].flat().join(" | ")}${schema.format ? ` (${schema.format})` : ""}`;
};

const range = (low: number | undefined, high: number | undefined, unit: string): string[] => {
  const shownHigh = high !== undefined && high < Number.MAX_SAFE_INTEGER ? high : undefined;
  const shownLow = low !== undefined && low > -Number.MAX_SAFE_INTEGER ? low : undefined;
  if (shownLow === undefined && shownHigh === undefined) return [];
  return [`${shownLow ?? "…"}–${shownHigh ?? "…"}${unit}`];
};

const boundsOf = (schema: JsonSchema): string =>
  [
    ...range(schema.minimum, schema.maximum, ""),
    ...range(schema.minLength, schema.maxLength, " characters"),
    ...range(undefined, schema.maxItems, " items"),
    ...(schema.pattern === undefined || schema.pattern.length > 60 ? [] : [schema.pattern]),
    ...(schema.default === undefined ? [] : [`default ${JSON.stringify(schema.default)}`]),
  ].join(" · ");

const field = (name: string, schema: JsonSchema, isRequired: boolean): Html => {
  const bounds = boundsOf(schema);
  return html`<li>
    <code class="name">${name}</code>${isRequired ? html`<span class="required" title="required">*</span>` : ""}
    <span class="kind">${kindOf(schema)}</span>${bounds ? html` <span class="bounds">${bounds}</span>` : ""}
    ${schema.description ? html`<p>${schema.description}</p>` : ""} ${fieldsOf(schema)}
  </li>`;
};

/** The fields of an object, or of each of the objects that it may be; nothing for what has none. */
const fieldsOf = (schema: JsonSchema): Html => {
  const { properties, required = [], items } = schema;
  if (properties) {
    return html`<ul class="fields">
      ${Object.entries(properties).map(([name, held]) => field(name, inner(held), required.includes(name)))}
    </ul>`;
  }
  if (items !== undefined) return fieldsOf(inner(items));
  const choices = choicesOf(schema).filter(({ $ref }) => $ref === undefined);
  return choices.length === 0 ? html`` : html`${choices.map(fieldsOf)}`;
};

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
