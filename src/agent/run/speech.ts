import { maxTextBytes, textBytes } from "../../protocol/text.ts";
import type { Tool } from "../tools/tool.ts";
import type { Channel } from "./channel.ts";
import { TextField, WholeCharacters } from "./text-field.ts";

/**
 * What one step says while it is generated: the text of each `send_message`, and the input of each other call that
 * shows, as it is written, to the space that is active then. Words meant for one space must not show in another: what
 * follows a call that may move the active space is held until that has run (it then appears whole).
 */
type Utterance = { streamId: string; channel: Channel; said: TextField | WholeCharacters; bytes: number };

/** What of a tool decides how its calls are streamed. `shows`: its input does, as it is. */
type Spoken = Pick<Tool, "movesSpace" | "speaks"> & { shows: boolean };

export type SpeechOptions = {
  /** The channel to the active space; null if none is active. */
  channel: (() => Channel) | null;
  mintStreamId: () => string;
  tool: (toolName: string) => Spoken | undefined;
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

    /** What the step began to say and does not say in a call is not said. */
    giveUp(except: number[] = []): void {
      const left = [...utterances.keys()].filter((index) => !except.includes(index));
      for (const index of left) this.drop(index, "interrupted", "the message was given up");
    },
  };
};
