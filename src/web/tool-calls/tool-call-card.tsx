import { memo, useId } from "react";
import type { Member, ToolCall } from "../../client/index.ts";
import { Icon } from "../look/icon.tsx";
import { useSignedIn } from "../session/signed-in.ts";
import { CallFrame } from "./call-frame.tsx";
import { CallInput } from "./call-input.tsx";
import { PeoplePart } from "./people-part.tsx";
import { isSameValue } from "./same-value.ts";
import { chipOf, standingOf } from "./standing.ts";
import { useNow } from "./use-now.ts";
import { isRecord, lay } from "./value-layout.ts";
import { ValueView } from "./value-view.tsx";

type ToolCallCardProps = { spaceId: string; call: ToolCall; members: readonly Member[] };

/** A tool call that shows: what it is about, whom it asks, and what came of it. */
export const ToolCallCard = memo(({ spaceId, call, members }: ToolCallCardProps) => {
  const { entityId } = useSignedIn();
  const { awaits, status, error, output } = call;
  const now = useNow(status === "requires_action" ? awaits?.expiresAt : undefined);
  const standing = standingOf(call, entityId, members, now);
  const isAsking = awaits?.kind === "answer";
  return (
    <CallFrame name={call.name} chip={chipOf(call, standing)}>
      <CallInput name={call.name} input={call.input} isAsking={isAsking} />
      {awaits && <PeoplePart {...{ spaceId, call, awaits, members, standing, now }} />}
      {output !== undefined && !isSameValue(output, call.input) && <Result output={output} isAnswer={isAsking} />}
      {error && error.code !== "approval_rejected" && (
        <p className="call-error">
          <Icon name="warning" size={16} /> <span dir="auto">{error.message}</span>
        </p>
      )}
      {status === "expired" && <p className="call-told">Nobody answered in time.</p>}
      {status === "canceled" && <p className="call-told">It was called off: nobody waits for it any more.</p>}
    </CallFrame>
  );
});

/** An answer of one property is that property's value. */
const bare = (answer: unknown): unknown => {
  const values = isRecord(answer) ? Object.values(answer) : [];
  return values.length === 1 ? values[0] : answer;
};

const Result = ({ output, isAnswer }: { output: unknown; isAnswer: boolean }) => {
  const headingId = useId();
  const laid = lay(isAnswer ? bare(output) : output);
  if (laid.kind === "nothing") return null;
  return (
    <section className="call-result" aria-labelledby={headingId}>
      <h4 id={headingId}>{isAnswer ? "Answer" : "Result"}</h4>
      <ValueView value={laid} />
    </section>
  );
};
