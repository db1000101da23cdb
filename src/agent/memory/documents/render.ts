import type { Json } from "../../../protocol/block.ts";
import type { BlockSchema, PlainSchema, Viewport } from "../../../protocol/block-schema.ts";
import { linesIn } from "../../../shared/quote.ts";
import { partsOf, valueOfPart } from "./cells.ts";
import { entryFields } from "./declared-fields.ts";
import { inWords, isObject, linesOf, ownField } from "./values.ts";

/** How blocks read: a function of schema and value. What is bounded for show only is whole with `whole`. */

/** One more with each change that older rows must follow: what a release before it rendered is rendered anew. */
export const renderingRules = 1;

/** Its later lines are set in: none passes for a field, an item or an entry of somebody else (S2). */
const setIn = (value: Json): string => linesIn(inWords(value)).join("\n  ");

/** Nor does a line of a section pass for the head of one. */
const underHead = (content: string): string =>
  content.includes("===") ? linesIn(content).join("\n").replaceAll(/^===/gm, " ===") : content;

const marker = (readOnly: boolean | undefined): string => (readOnly ? " [read-only]" : "");

const throughViewport = (text: string, { startLine, displayLines }: Viewport): string => {
  const lines = linesOf(text);
  const start = Math.max(0, startLine - 1);
  if (start >= lines.length) {
    return `[Viewport: lines ${start + 1}-${start + displayLines} of ${lines.length} (past end of content)]`;
  }
  const shown = lines.slice(start, start + displayLines).map((line) => line.replace(/\r$/, ""));
  return `[Showing lines ${start + 1}-${start + shown.length} of ${lines.length}]\n${shown.join("\n")}`;
};

const listed = (item: Json, index: number): string => {
  const done = ownField(item, "done");
  return `${typeof done === "boolean" ? (done ? "[x]" : "[ ]") : `${index + 1}.`} ${setIn(item)}`;
};

const logged = (entry: Json, fields: string[]): string => {
  if (!isObject(entry)) return setIn(entry);
  const [timestamp, agent] = [ownField(entry, "timestamp"), ownField(entry, "agent")];
  return [
    ...(typeof timestamp === "string" ? [`[${timestamp}]`] : []),
    ...(typeof agent === "string" ? [`(${agent})`] : []),
    ...fields.flatMap((name) => {
      const held = ownField(entry, name);
      return held === undefined ? [] : [setIn(held)];
    }),
  ].join(" ");
};

const renderPlain = (schema: PlainSchema, value: Json | undefined, whole: boolean): string => {
  switch (schema.type) {
    case "text": {
      const text = typeof value === "string" ? value : "";
      return schema.viewport && !whole ? throughViewport(text, schema.viewport) : text;
    }
    case "map":
      return schema.fields
        .flatMap(({ name, type, readOnly }) => {
          const held = ownField(value, name);
          const title = `${name}${marker(readOnly)}:`;
          if (type === "counter") return [`${title} ${inWords(held ?? 0)}`];
          if (held === undefined) return [];
          return type === "list" && Array.isArray(held)
            ? [title, ...held.map((item) => `- ${setIn(item)}`)]
            : [`${title} ${setIn(held)}`];
        })
        .join("\n");
    case "list":
      return (Array.isArray(value) ? value : []).map(listed).join("\n");
    case "log": {
      const entries = Array.isArray(value) ? value : [];
      const shown = whole ? entries : entries.slice(-schema.displayLimit);
      const fields = entryFields(schema).map(({ name }) => name);
      return shown
        .toReversed()
        .map((entry) => logged(entry, fields))
        .join("\n");
    }
  }
};

/** Whether a viewport or a limit leaves out some of what it holds. */
export const isPartial = (schema: BlockSchema, value: Json): boolean =>
  partsOf(schema).some((part) => {
    const held = valueOfPart(part, value);
    if (part.schema.type === "log") return Array.isArray(held) && held.length > part.schema.displayLimit;
    if (part.schema.type !== "text" || !part.schema.viewport) return false;
    const { startLine, displayLines } = part.schema.viewport;
    const lines = typeof held === "string" ? linesOf(held).length : 0;
    return lines > 0 && (startLine > 1 || displayLines < lines);
  });

/** With `whole`, also what a viewport or a limit does not show: for search, and to measure it. */
export const render = (schema: BlockSchema, value: Json, { whole = false }: { whole?: boolean } = {}): string =>
  partsOf(schema)
    .flatMap((part) => {
      const content = renderPlain(part.schema, valueOfPart(part, value), whole);
      if (part.name === undefined) return [content];
      return [`=== ${part.name}${marker(part.readOnly)} ===`, ...(content === "" ? [] : [underHead(content)])];
    })
    .join("\n\n");
