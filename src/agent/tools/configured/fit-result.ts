import { textBytes } from "../../../protocol/text.ts";
import { maxToolOutputBytes, maxToolOutputTokens } from "../../bounds.ts";
import { estimateText } from "../../context/tokens.ts";

/** How much more a text holds than a result may: 1 and less fits. */
const excess = (text: string): number =>
  Math.max(textBytes(JSON.stringify(text)) / maxToolOutputBytes, estimateText(text) / maxToolOutputTokens);

const fitted = (text: string): { text: string; cut: boolean } => {
  let fitting = text;
  for (let over = excess(fitting); over > 1; over = excess(fitting)) {
    fitting = fitting.slice(0, Math.floor(fitting.length * Math.min(0.95, 1 / over)));
  }
  return { text: fitting.toWellFormed(), cut: fitting.length < text.length };
};

const note = `only the beginning: a result holds at most ${maxToolOutputBytes} bytes and ${maxToolOutputTokens} tokens (maxToolOutputBytes, maxToolOutputTokens)`;

/** A text as a result may hold it, in bytes and in estimated tokens; `cut`: it is only the beginning already. */
export const fitText = (text: string, cut: boolean): unknown => {
  const fits = fitted(text);
  return cut || fits.cut ? { text: fits.text, note } : text;
};

/** JSON as a result may hold it: where there is too much, the beginning of its text. */
export const fitJson = (value: unknown): unknown => {
  const text = JSON.stringify(value);
  return fitted(text).cut ? fitText(text, true) : value;
};
