import { memo, type ReactNode, useEffect, useId, useState } from "react";
import type { Member, ToolCall } from "../../client/index.ts";
import { Boundary } from "../look/boundary.tsx";
import { Icon } from "../look/icon.tsx";
import { useSignedIn } from "../session/session.ts";
import { chartOf } from "./chart.ts";
import { ChartView } from "./chart-view.tsx";
import { besideQuestion, questionOf } from "./choice.ts";
import { parsePartialJson } from "./partial-json.ts";
import { PeoplePart } from "./people-part.tsx";
import { ShownFields, useReading } from "./shown-fields.tsx";
import { type Chip, chipOf, standingOf } from "./standing.ts";
import { toolTitle } from "./titles.ts";
import { isNothing, isRecord, isSameValue, tableOf } from "./value-layout.ts";
import { TableView, ValueView } from "./value-view.tsx";
import "./tool-call-card.css";

type ToolCallCardProps = { spaceId: string; call: ToolCall; members: readonly Member[] };

/** A tool call in a space: its input, the people whom it asks, and its outcome. */
export const ToolCallCard = memo(({ spaceId, call, members }: ToolCallCardProps) => {
  const { entityId } = useSignedIn();
  const { awaits, status, error, output } = call;
  const now = useNow(status === "requires_action" ? awaits?.expiresAt : undefined);
  const standing = standingOf(call, entityId, members, now);
  const isAsking = awaits?.kind === "answer";
  const reading = useReading(awaits);
  return (
    <CallFrame name={call.name} chip={chipOf(call, standing)}>
      {reading.shown.length > 0 ? (
        <ShownFields key={awaits?.inputHash} reading={reading} />
      ) : (
        <CallInput name={call.name} input={call.input} isAsking={isAsking} schema={awaits?.schema} />
      )}
      {awaits && <PeoplePart {...{ spaceId, call, awaits, members, standing, now }} unread={reading.unread} />}
      {output !== undefined && !isSameValue(output, call.input) && <Result output={output} isAnswer={isAsking} />}
      {error && error.code !== "approval_rejected" && (
        <p className="icon-line danger">
          <Icon name="warning" size={16} /> <span dir="auto">{error.message}</span>
        </p>
      )}
      {status === "expired" && <p className="soft">Nobody answered in time.</p>}
      {status === "canceled" && <p className="soft">It was called off: nobody waits for it any more.</p>}
    </CallFrame>
  );
});

/** A call whose input is still being written, with the part that is there. */
export const GrowingCall = memo(({ name, text }: { name: string; text: string }) => (
  <CallFrame name={name} chip={{ words: "Writing", tone: "agent" }}>
    <CallInput name={name} input={parsePartialJson(text)} isAsking={false} />
  </CallFrame>
));

const CallFrame = ({ name, chip, children }: { name: string; chip: Chip; children: ReactNode }) => {
  const { title, server } = toolTitle(name);
  return (
    <section className="call" data-tone={chip.tone} tabIndex={-1} aria-label={`${title}, ${chip.words}`}>
      <header className="call-head row">
        <Icon name="tool" size={16} />
        <h3 title={name}>
          {title}
          {server && <span className="soft"> {server}</span>}
        </h3>
        <span className={`tiny tone-${chip.tone}`}>{chip.words}</span>
      </header>
      <div className="call-body if-filled stack">{children}</div>
    </section>
  );
};

type CallInputProps = { name: string; input: unknown; isAsking: boolean; schema?: unknown };

/** The input of a call as it is meant; its fields where that cannot be shown. */
const CallInput = (props: CallInputProps) => (
  <Boundary of={props.input} instead={<Fields value={props.input} />}>
    <MeantInput {...props} />
  </Boundary>
);

/** A chart or table for a tool of that name, a question, or its fields. */
const MeantInput = ({ name, input, isAsking, schema }: CallInputProps) => {
  const kind = name.split("__").at(-1)?.toLowerCase();
  const chart = kind === "chart" ? chartOf(input) : null;
  if (chart) return <ChartView chart={chart} />;
  const table = kind === "table" ? tableOf(input) : null;
  if (table) return <TableView table={table} />;
  const question = isAsking ? questionOf(input) : null;
  if (question === null) return <Fields value={input} />;
  return (
    <>
      <p className="call-question" dir="auto">
        {question}
      </p>
      <Fields value={besideQuestion(input, schema)} />
    </>
  );
};

const Fields = ({ value }: { value: unknown }) => (isNothing(value) ? null : <ValueView value={value} />);

/** An answer of one property shows as that property's value. */
const bare = (answer: unknown): unknown => {
  const values = isRecord(answer) ? Object.values(answer) : [];
  return values.length === 1 ? values[0] : answer;
};

const Result = ({ output, isAnswer }: { output: unknown; isAnswer: boolean }) => {
  const headingId = useId();
  const value = isAnswer ? bare(output) : output;
  if (isNothing(value)) return null;
  return (
    <section className="call-result stack" aria-labelledby={headingId}>
      <h4 id={headingId} className="tiny soft">
        {isAnswer ? "Answer" : "Result"}
      </h4>
      <ValueView value={value} />
    </section>
  );
};

const minuteMs = 60_000;

/** The time, updated every half minute until `until`, every second in the last two minutes, and right after it. */
const useNow = (until: string | undefined): number => {
  const [now, setNow] = useState(Date.now);
  const end = until === undefined ? 0 : Date.parse(until);
  useEffect(() => {
    const left = end - now;
    if (!(left > 0)) return;
    const timer = setTimeout(() => setNow(Date.now()), left > 2 * minuteMs ? minuteMs / 2 : Math.min(1000, left + 1));
    return () => clearTimeout(timer);
  }, [end, now]);
  return now;
};
