import { JSONParser } from "@streamparser/json";
import type { ChannelFrame } from "../../protocol/events.ts";
import { maxTextBytes, textBytes } from "../../protocol/text.ts";
import type { Tool } from "../tools/tool.ts";

/**
 * Passes on a text that comes in pieces, each as well-formed Unicode. Half of a surrogate pair waits for its other
 * half, and becomes U+FFFD where none comes.
 */
class WholeCharacters {
  #held = "";

  push(piece: string): string {
    const text = this.#held + piece;
    const last = text.charCodeAt(text.length - 1);
    this.#held = last >= 0xd800 && last <= 0xdbff ? text.slice(-1) : "";
    return (this.#held === "" ? text : text.slice(0, -1)).toWellFormed();
  }
}

const surrogate = /[\ud800-\udfff]/g;

/**
 * Reads `text` out of a call's input while the model writes it. Feed it the deltas, however they are cut; it gives the
 * text as it comes, in pieces that are each well-formed. After the first mistake in the JSON it gives none: such a call
 * is refused. A delta costs its own length and a copy of the text so far.
 */
export class TextField {
  readonly #parser = new JSONParser({ paths: ["$.text"], emitPartialTokens: true, emitPartialValues: true });
  readonly #whole = new WholeCharacters();
  #text = "";
  #ended = false;

  constructor() {
    this.#parser.onValue = ({ value, partial }) => {
      if (typeof value !== "string" || this.#ended) return;
      this.#text = value;
      this.#ended = partial !== true;
    };
    this.#parser.onError = () => undefined;
  }

  push(delta: string): string {
    const given = this.#text.length;
    // The parser keeps halves of a character apart, or joins them, only where they are escaped.
    this.#parser.write(delta.replace(surrogate, (half) => `\\u${half.charCodeAt(0).toString(16)}`));
    return this.#whole.push(this.#text.slice(given));
  }
}

/**
 * What one step says to the active space as it is written: each `send_message`'s text, and the input of each other call
 * that shows. Words meant for one space must not show in another. So what follows a call that may move the active space
 * is held until that has run (it then appears whole).
 */
type Utterance = { streamId: string; channel: Sends; said: TextField | WholeCharacters; bytes: number };
type Sends = { send(frame: ChannelFrame): void };

export type SpeechOptions = {
  /** The channel to the active space; null if none is active. */
  channel: (() => Sends) | null;
  mintStreamId: () => string;
  /** What decides how a tool's calls are streamed. `shows`: their input does, as it is. */
  tool: (toolName: string) => (Pick<Tool, "movesSpace" | "speaks"> & { shows: boolean }) | undefined;
};

export type Speech = ReturnType<typeof createSpeech>;

export const createSpeech = ({ channel, mintStreamId, tool: toolOf }: SpeechOptions) => {
  const utterances = new Map<number, Utterance>();
  let held = false;
  return {
    /** The model begins the step's call number `index`. */
    begin(index: number, toolName: string): void {
      const tool = toolOf(toolName);
      if (tool?.movesSpace) held = true;
      if (!tool || !(tool.speaks || tool.shows) || held || !channel) return;
      const said = tool.speaks ? new TextField() : new WholeCharacters();
      const utterance = { streamId: mintStreamId(), channel: channel(), said, bytes: 0 };
      utterances.set(index, utterance);
      utterance.channel.send({ type: "start", streamId: utterance.streamId, toolName, speaks: tool.speaks });
    },

    /** More of that call's input, as raw JSON text. */
    delta(index: number, inputDelta: string): void {
      const utterance = utterances.get(index);
      const text = utterance?.said.push(inputDelta) ?? "";
      if (!utterance || text === "") return;
      utterance.bytes += textBytes(text);
      if (utterance.bytes <= maxTextBytes) {
        utterance.channel.send({ type: "delta", streamId: utterance.streamId, text });
      } else this.drop(index, "text_too_long", `a message holds at most ${maxTextBytes} bytes (maxTextBytes)`);
    },

    streamOf: (index: number): string | undefined => utterances.get(index)?.streamId,

    /** Its message is in the log: the stream has ended there. */
    said: (index: number): void => void utterances.delete(index),

    /** It will not be said: clients drop its text. */
    drop(index: number, code: string, message: string): void {
      const utterance = utterances.get(index);
      utterances.delete(index);
      utterance?.channel.send({ type: "drop", streamId: utterance.streamId, code, message });
    },

    /** Drops what the step began to say, but for the calls in `except`. */
    giveUp(except: number[] = []): void {
      const left = [...utterances.keys()].filter((index) => !except.includes(index));
      for (const index of left) this.drop(index, "interrupted", "the message was given up");
    },
  };
};
