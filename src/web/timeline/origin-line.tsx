import { use, useCallback } from "react";
import type { Message } from "../../client/index.ts";
import { OwnSpacesContext } from "../session/own-spaces.ts";
import { useSignedIn } from "../session/session.ts";
import { useRequest } from "../session/use-request.ts";
import { plainText } from "./quoted.ts";

type Origin = NonNullable<Message["origin"]>;

const runWords = {
  plan: "because a plan was due",
  service: "because of a service's event",
  several: "because of one of several events",
};

/** The reason why an agent speaks here: "because of a message in another space", or its quotation for who is there too. */
export const OriginLine = ({ message: { id, spaceId, origin } }: { message: Message }) => {
  const ownSpaces = use(OwnSpacesContext);
  return (
    <span className="message-line small soft" dir="auto">
      {origin && !("sourceType" in origin) && origin.messageId && ownSpaces.has(origin.spaceId) ? (
        <QuotedOrigin spaceId={spaceId} messageId={id} spaceName={ownSpaces.get(origin.spaceId) ?? ""} />
      ) : (
        origin && <PlainOrigin origin={origin} />
      )}
    </span>
  );
};

/** As far as everybody here may know it. */
const PlainOrigin = ({ origin }: { origin: Origin }) => {
  if ("sourceType" in origin) return runWords[origin.sourceType];
  const { sourceSpaceName: spaceName, sourceSenderName: sender, sourceEvent: text = "" } = origin;
  if (spaceName === undefined) return "because of a message in another space";
  return sender === undefined ? <Unquoted spaceName={spaceName} /> : <Quotation {...{ sender, spaceName, text }} />;
};

const Unquoted = ({ spaceName }: { spaceName: string }) => (
  <>
    because of a message in <strong>{spaceName}</strong>
  </>
);

const longest = 160;

const Quotation = ({ sender, spaceName, text }: { sender: string; spaceName: string; text: string }) => {
  const words = plainText(text);
  return (
    <>
      because <strong>{sender}</strong> said in <strong>{spaceName}</strong>: “{words.slice(0, longest)}
      {words.length > longest && "…"}”
    </>
  );
};

type QuotedOriginProps = { spaceId: string; messageId: string; spaceName: string };

/**
 * Its own space tells who said it and what. Until it has, or if it does not, its name stands here. Each row that comes
 * into view asks anew: the words may have been edited or deleted since.
 */
const QuotedOrigin = ({ spaceId, messageId, spaceName }: QuotedOriginProps) => {
  const { client } = useSignedIn();
  const { answer } = useRequest(useCallback(() => client.getOrigin(spaceId, messageId), [client, spaceId, messageId]));
  if (!answer) return <Unquoted spaceName={spaceName} />;
  return (
    <Quotation sender={answer.message.sender.name} spaceName={answer.spaceName} text={answer.message.text ?? ""} />
  );
};
