import { useState } from "react";
import { fieldsOf, itemsOf, type Json, type PlainSchema } from "../../client/index.ts";
import { LinkButton } from "../look/button.tsx";
import { Time } from "../look/time.tsx";
import { inWords } from "./item-shape.ts";
import { AddLine } from "./line-edit.tsx";
import type { Part } from "./part.tsx";

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
  const shown = entries.slice(-most).toReversed();
  const fields = schema.entryFields.map(nameOf);
  return (
    <>
      {may.append && isOfWords(schema) && (
        <AddLine label={`Write in ${name}`} onAdd={(entry) => onEdit({ op: "append_log_entry", entry })} />
      )}
      {entries.length === 0 && <p className="soft">Nothing written yet.</p>}
      <ol className="stack" aria-label={name} reversed>
        {shown.map((entry, index) => (
          <LogEntry key={entries.length - index} entry={entry} fields={fields} />
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

const LogEntry = ({ entry, fields: [first = "message", ...others] }: { entry: Json; fields: string[] }) => {
  const { timestamp, agent, ...held } = fieldsOf(entry);
  const isTime = typeof timestamp === "string" && !Number.isNaN(Date.parse(timestamp));
  const rest = others.filter((name) => held[name] !== undefined);
  return (
    <li className="block-entry wrap">
      <p className="baseline small soft">
        {typeof agent === "string" && <strong>{agent}</strong>}
        {isTime ? <Time iso={timestamp} /> : <span>just now</span>}
      </p>
      <p>{inWords(held[first])}</p>
      {rest.map((name) => (
        <p key={name} className="block-item-rest wrap small soft">
          {name}: {inWords(held[name])}
        </p>
      ))}
    </li>
  );
};
