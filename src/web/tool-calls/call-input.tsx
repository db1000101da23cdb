import { choiceOf, questionOf } from "./answer-result.ts";
import { chartOf } from "./chart-model.ts";
import { ChartView } from "./chart-view.tsx";
import { tableOf } from "./table-model.ts";
import { isRecord, lay } from "./value-layout.ts";
import { LaidTable, ValueView } from "./value-view.tsx";

/** What only serves to ask, and shows as controls. */
const controls = new Set(["options", "schema", "multiple", "question", "message", "prompt"]);

/** What went into a call, by its name: a drawn chart, a table, a question, or its fields. */
export const CallInput = ({ name, input, isAsking }: { name: string; input: unknown; isAsking: boolean }) => {
  const kind = name.split("__").at(-1)?.toLowerCase();
  const chart = kind === "chart" ? chartOf(input) : null;
  if (chart) return <ChartView chart={chart} />;
  const table = kind === "table" ? tableOf(input) : null;
  if (table) return <LaidTable table={table} />;
  const question = isAsking || choiceOf(input) ? questionOf(input) : null;
  if (question === null) return <Fields value={input} />;
  const rest = isRecord(input)
    ? Object.entries(input).filter(([key, value]) => !controls.has(key) && value !== question)
    : [];
  return (
    <>
      <p className="call-question" dir="auto">
        {question}
      </p>
      <Fields value={Object.fromEntries(rest)} />
    </>
  );
};

const Fields = ({ value }: { value: unknown }) => {
  const laid = lay(value);
  return laid.kind === "nothing" ? null : <ValueView value={laid} />;
};
