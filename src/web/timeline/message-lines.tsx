import type { Message } from "../../client/index.ts";

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

/** What a message answers. */
export const QuoteLine = ({ name, text }: { name: string; text: string }) => (
  <span className="message-line message-quote">
    <strong>{name}</strong> {text}
  </span>
);
