import { Icon } from "../look/icon.tsx";
import "./reply-strip.css";

type ReplyStripProps = { name: string; text: string; onCancel: () => void };

/** What the next message answers, over the composer. */
export const ReplyStrip = ({ name, text, onCancel }: ReplyStripProps) => (
  <div className="reply-strip">
    <Icon name="reply" size={16} />
    <p className="reply-strip-words" role="status">
      <span>
        Answering <strong>{name}</strong>
      </span>
      <span className="reply-strip-text" dir="auto">
        {text}
      </span>
    </p>
    <button type="button" className="icon-button" aria-label="Cancel the reply" title="Cancel (Esc)" onClick={onCancel}>
      <Icon name="close" size={16} />
    </button>
  </div>
);
