import { type ReactNode, useEffect, useMemo, useState } from "react";
import {
  type Block,
  type BlockDetail,
  type BlockState,
  fieldsOf,
  type LiveBlock,
  type SpaceState,
  shownValue,
} from "../../client/index.ts";
import { useBlock } from "../../client/react.ts";
import { Icon } from "../look/icon.tsx";
import { full, short } from "../look/time.ts";
import { useSignedIn } from "../session/signed-in.ts";
import { BlockHistory } from "./block-history.tsx";
import { authorName } from "./block-words.ts";
import { mayNothing, mayWith } from "./may.ts";
import { PlainView } from "./plain-view.tsx";
import { RefusedEdits } from "./refused-edits.tsx";
import { useChanges } from "./use-changes.ts";

type BlockViewProps = { space: SpaceState; agentId: string; agentName: string; label: string };

/** One block, live: what it holds, what may be done with it, and who changed it. */
export const BlockView = ({ space, agentId, agentName, label }: BlockViewProps) => {
  const { client, signOut } = useSignedIn();
  const { state, live } = useBlock(client, space.spaceId, agentId, label);
  const [isHistoryShown, setHistoryShown] = useState(false);
  const { block, connection } = state;
  const announced = useChanges(state, space);

  useEffect(() => {
    if (connection.status === "closed" && connection.reason === "signed_out") signOut("expired");
  }, [connection, signOut]);

  if (!block) {
    return <p className="block-note">{endedWords(state) ?? "Loading …"}</p>;
  }
  const may = connection.status === "closed" ? mayNothing : mayWith(block.permission);
  return (
    <div className="block">
      <p className="block-about">
        {agentName} keeps it{wordsFor(block.permission)}.
      </p>
      {block.description !== "" && <p className="block-description">{block.description}</p>}
      {endedWords(state) && <p className="block-ended">{endedWords(state)}</p>}
      <RefusedEdits edits={state.edits} live={live} />
      <BlockContent block={block} state={state} live={live} space={space} may={may} />
      <div className="block-foot">
        <LastChange block={block} state={state} space={space} />
        <span className="block-foot-buttons">
          {may.change && (
            <button
              type="button"
              className="icon-button"
              aria-label="Undo your last change"
              title="Undo your last change"
              onClick={() => live?.edit([{ op: "undo" }])}
            >
              <Icon name="undo" size={18} />
            </button>
          )}
          <button
            type="button"
            className="icon-button"
            aria-label="History"
            title="History"
            aria-expanded={isHistoryShown}
            onClick={() => setHistoryShown((isShown) => !isShown)}
          >
            <Icon name="clock" size={18} />
          </button>
        </span>
      </div>
      {isHistoryShown && (
        <BlockHistory block={{ spaceId: space.spaceId, agentId, label }} version={block.version} space={space} />
      )}
      <p className="visually-hidden" role="status">
        {announced}
      </p>
    </div>
  );
};

const wordsFor = (permission: Block["permission"]): string => {
  switch (permission) {
    case "Append":
      return "; you may add to it";
    case "ReadWrite":
      return "; you may add to it and change it";
    case "Admin":
      return "; you may add to it, change it and delete from it";
    default:
      return "; you may read it";
  }
};

const endedWords = ({ connection, block }: BlockState): string | null => {
  if (connection.status !== "closed") return null;
  if (connection.reason === "deleted") return "This block was deleted.";
  if (connection.reason !== "removed") return null;
  return block ? "This block is not shared with this space any more." : "This block is not shared here.";
};

const LastChange = ({ block, state, space }: { block: BlockDetail; state: BlockState; space: SpaceState }) => {
  if (state.connection.status === "reconnecting" || state.connection.status === "offline") {
    return <span className="block-last">The connection is lost. Reconnecting …</span>;
  }
  if (state.edits.some(({ status }) => status.kind !== "refused")) return <span className="block-last">Saving …</span>;
  const by = state.changedBy === null ? "Changed" : `${authorName(state.changedBy, space)} changed it`;
  return (
    <time className="block-last" dateTime={block.updatedAt} title={full(block.updatedAt)}>
      {by} · {short(block.updatedAt)}
    </time>
  );
};

type BlockContentProps = {
  block: BlockDetail;
  state: BlockState;
  live: LiveBlock | null;
  space: SpaceState;
  may: ReturnType<typeof mayWith>;
};

const BlockContent = ({ block, state, live, space, may }: BlockContentProps): ReactNode => {
  const value = useMemo(() => shownValue(state), [state]);
  const isStored = state.edits.every(({ status }) => status.kind === "refused");
  const part = { space, version: isStored ? block.version : null, changedBy: state.changedBy };
  const { schema, label } = block;
  if (schema.type !== "composite") {
    return (
      <PlainView
        {...part}
        schema={schema}
        value={value}
        may={may}
        name={label}
        onEdit={(operation, onVersion) => live?.edit([operation], onVersion)}
      />
    );
  }
  return schema.sections.map(({ name, schema: of, description, readOnly }) => (
    <section key={name} className="block-section" aria-label={name}>
      <h3>
        {name}
        {readOnly && <span className="block-read-only">read-only</span>}
      </h3>
      {description && <p className="field-hint">{description}</p>}
      <PlainView
        {...part}
        schema={of}
        value={fieldsOf(value)[name] ?? null}
        may={readOnly ? mayNothing : may}
        name={name}
        onEdit={(operation, onVersion) => live?.edit([{ ...operation, section: name }], onVersion)}
      />
    </section>
  ));
};
