import type { LiveBlock, PendingEdit } from "../../client/index.ts";
import { Icon } from "../look/icon.tsx";
import { editWords } from "./block-words.ts";

/** Edits that were not stored, with the reason and the written text: to retry, copy or discard. */
export const RefusedEdits = ({ edits, live }: { edits: readonly PendingEdit[]; live: LiveBlock | null }) => (
  <div role="alert" className="block-refusals stack">
    {edits.map(({ key, operations, status }) => {
      const [operation] = operations;
      if (status.kind !== "refused" || !operation) return null;
      const { doing, text } = editWords(operation);
      return (
        <div key={key} className="block-refused notice stack">
          <p className="block-refused-why wrap">
            <Icon name="warning" size={17} />
            <span>
              {doing} was not stored. {status.message}
            </span>
          </p>
          {text !== "" && <p className="block-text block-excerpt wrap">{text}</p>}
          <div className="buttons">
            <button type="button" className="button" onClick={() => live?.retry(key)}>
              Try again
            </button>
            <button type="button" className="button button-plain" onClick={() => live?.discard(key)}>
              Discard
            </button>
          </div>
        </div>
      );
    })}
  </div>
);
