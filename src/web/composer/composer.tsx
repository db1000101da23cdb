import { type KeyboardEvent, useEffect, useLayoutEffect, useRef, useState } from "react";
import { ColloquyError, type Member, maxTextBytes, textBytes } from "../../client/index.ts";
import { Icon } from "../look/icon.tsx";
import { useSignedIn } from "../session/session.ts";
import { recall, remember } from "../storage.ts";
import type { Quoted } from "../timeline/quoted.ts";
import { useToast } from "../toasts/toasts.tsx";
import { useMentions } from "./mentions.tsx";
import { ReplyStrip } from "./reply.tsx";
import "./composer.css";

const bytesShownFrom = maxTextBytes * 0.8;
const number = new Intl.NumberFormat();

type ComposerProps = {
  spaceId: string;
  spaceName: string;
  /** The members that a mention may name. */
  people: readonly Member[];
  isClosed: boolean;
  /** The message that the next one answers. */
  replied: Quoted | null;
  onCancelReply: () => void;
  onSend: (text: string) => void;
  onTyping: () => void;
};

/** The field for a new message. Drafts outlive a change of space and a reload. */
export const Composer = ({ spaceId, spaceName, people, isClosed, replied, ...on }: ComposerProps) => {
  const { entityId } = useSignedIn();
  const draftKey = `colloquy.draft.${entityId}.${spaceId}`;
  const [edit, setEdit] = useState(() => ({ text: recall("tab", draftKey) ?? "", caret: 0 }));
  const area = useRef<HTMLTextAreaElement>(null);
  const caretToSet = useRef<number | null>(null);
  const toast = useToast();
  const { text } = edit;
  const bytes = textBytes(text);
  const isTooLong = bytes > maxTextBytes;
  const canSend = text.trim() !== "" && !isTooLong && !isClosed;

  const change = (next: { text: string; caret: number }): void => {
    setEdit(next);
    remember("tab", draftKey, next.text === "" ? null : next.text);
  };
  const mentions = useMentions(people, edit, (next) => {
    caretToSet.current = next.caret;
    change(next);
  });
  const cancelReply = (): void => {
    on.onCancelReply();
    area.current?.focus();
  };

  useLayoutEffect(() => {
    const element = area.current;
    if (!element) return;
    element.style.height = "auto";
    element.style.height = `${element.scrollHeight}px`;
    if (caretToSet.current !== null) element.setSelectionRange(caretToSet.current, caretToSet.current);
    caretToSet.current = null;
  }, [text]);

  const repliedId = replied?.id;
  useEffect(() => {
    if (repliedId !== undefined) area.current?.focus();
  }, [repliedId]);

  const send = (): void => {
    if (!canSend) return;
    try {
      on.onSend(text);
      change({ text: "", caret: 0 });
    } catch (error) {
      if (!(error instanceof ColloquyError)) throw error;
      toast(error.message);
    }
    area.current?.focus();
  };

  const keyDown = (event: KeyboardEvent): void => {
    if (event.nativeEvent.isComposing || mentions.handleKey(event)) return;
    if (event.key === "Escape" && replied) on.onCancelReply();
    const sends = event.key === "Enter" && !event.shiftKey && !matchMedia("(pointer: coarse)").matches;
    if (!sends) return;
    event.preventDefault();
    send();
  };

  return (
    <form
      className="composer column"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      {mentions.list}
      <div className="composer-box" data-too-long={isTooLong}>
        {replied && <ReplyStrip name={replied.name} text={replied.text ?? ""} onCancel={cancelReply} />}
        <textarea
          ref={area}
          className="composer-text"
          rows={1}
          value={text}
          placeholder={`Write in ${spaceName}`}
          aria-label={`Message to ${spaceName}`}
          aria-describedby="composer-hint"
          {...mentions.combobox}
          aria-invalid={isTooLong}
          dir="auto"
          disabled={isClosed}
          onChange={(event) => {
            change({ text: event.target.value, caret: event.target.selectionStart });
            if (event.target.value.trim() !== "") on.onTyping();
          }}
          onSelect={(event) => {
            const caret = event.currentTarget.selectionStart;
            setEdit((current) => (current.caret === caret ? current : { ...current, caret }));
          }}
          onKeyDown={keyDown}
        />
        <button type="submit" className="composer-send" disabled={!canSend} aria-label="Send">
          <Icon name="send" />
        </button>
      </div>
      <div className="composer-foot between tiny soft">
        <span id="composer-hint">
          <kbd>Enter</kbd> sends · <kbd>Shift</kbd> <kbd>Enter</kbd> breaks the line · <kbd>@</kbd> mentions
        </span>
        {bytes >= bytesShownFrom && (
          <span className="numeric" data-too-long={isTooLong} role="status">
            {number.format(bytes)} of {number.format(maxTextBytes)} bytes
          </span>
        )}
      </div>
    </form>
  );
};
