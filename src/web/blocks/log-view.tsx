import { useState } from "react";
import { fieldsOf, itemsOf, type Json, type PlainSchema } from "../../client/index.ts";
import { LinkButton } from "../look/link-button.tsx";
import { full, short } from "../look/time.ts";
import { AddLine } from "./add-line.tsx";
import { inWords } from "./item-shape.ts";
import type { Part } from "./part.ts";

type LogSchema = Extract<PlainSchema, { type: "log" }>;

/** A log may hold thousands of entries. */
const mostShown = 200;

const nameOf = (field: LogSchema["entryFields"][number]): string => (typeof field === "string" ? field : field.name);

/** Whether an entry of this log can be written as plain words. */
const isOfWords = ({ entryFields }: LogSchema): boolean => {
  const [first, ...others] = entryFields;
  const isText = typeof first === "string" || first === undefined || first.type === "text";
  return isText && others.every((field) => typeof field === "string" || !field.required);
};

export const LogView = ({ schema, value, may, name, onEdit }: Part<LogSchema>) => {
  const [isWhole, setWhole] = useState(false);
  const entries = itemsOf(value);
  const most = isWhole ? mostShown : Math.min(schema.displayLimit, mostShown);
  const shown = entries.slice(-most);
  const firstPlace = entries.length - shown.length;
  const rows = shown.map((entry, index) => ({ entry, place: firstPlace + index }));
  return (
    <>
      {may.append && isOfWords(schema) && (
        <AddLine label={`Write in ${name}`} onAdd={(entry) => onEdit({ op: "append_log_entry", entry })} />
      )}
      {entries.length === 0 && <p className="soft">Nothing written yet.</p>}
      <ol className="stack" aria-label={name} reversed>
        {rows.toReversed().map(({ entry, place }) => (
          <LogEntry key={place} entry={entry} fields={schema.entryFields.map(nameOf)} />
        ))}
      </ol>
      {!isWhole && entries.length > shown.length && (
        <LinkButton onClick={() => setWhole(true)}>
          Show {Math.min(entries.length, mostShown) - shown.length} older
        </LinkButton>
      )}
    </>
  );
};

const LogEntry = ({ entry, fields }: { entry: Json; fields: string[] }) => {
  const { timestamp, agent, ...held } = fieldsOf(entry);
  const [first = "message", ...others] = fields;
  const isTime = typeof timestamp === "string" && !Number.isNaN(Date.parse(timestamp));
  return (
    <li className="block-entry wrap">
      <p className="baseline small soft">
        {typeof agent === "string" && <strong>{agent}</strong>}
        {isTime ? (
          <time dateTime={timestamp} title={full(timestamp)}>
            {short(timestamp)}
          </time>
        ) : (
          <span>just now</span>
        )}
      </p>
      <p>{inWords(held[first])}</p>
      {others.map(
        (name) =>
          held[name] !== undefined && (
            <p key={name} className="block-item-rest wrap small soft">
              {name}: {inWords(held[name])}
            </p>
          ),
      )}
    </li>
  );
};
