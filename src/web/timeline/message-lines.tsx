import type { Message } from "../../client/index.ts";
import type { Quoted } from "./quoted.ts";

/** Why an agent speaks here: "because Husam asked in Project Alpha", as far as that space shares it. */
export const OriginLine = ({ origin }: { origin: NonNullable<Message["origin"]> }) => {
  const { sourceSpaceName, sourceSenderName, sourceEvent } = origin;
  return (
    <span className="message-line message-origin" title={sourceEvent}>
      because {sourceSenderName ? <strong>{sourceSenderName}</strong> : "something was"}
      {sourceSenderName ? " asked in " : " said in "}
      <strong>{sourceSpaceName ?? "another space"}</strong>
    </span>
  );
};

type QuoteLineProps = { quoted: Quoted; onGoTo?: ((messageId: string) => void) | undefined };

/** What a message answers; it leads there where that is loaded. */
export const QuoteLine = ({ quoted: { id, name, text }, onGoTo }: QuoteLineProps) =>
  text === null || !onGoTo ? (
    <span className="message-line message-quote">
      <span className="visually-hidden">Answers </span>
      <strong>{name}</strong> {text}
    </span>
  ) : (
    <button
      type="button"
      className="message-line message-quote"
      title="Go to this message"
      onClick={() => onGoTo(id)}
      dir="auto"
    >
      <span className="visually-hidden">Answers </span>
      <strong>{name}</strong> {text}
    </button>
  );
