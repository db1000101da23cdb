/** Whether every line break of a text is CRLF. */
const isCrlf = (text: string): boolean => text.includes("\r\n") && !/(?:^|[^\r])\n/.test(text);

const toLf = (text: string): string => text.replaceAll("\r\n", "\n");

/**
 * Changes a text by its lines: one whose breaks are all CRLF keeps them, whatever breaks `by` has. In one without CRLF
 * those of `by` are taken for plain ones where all of them are CRLF.
 */
export const changeLines = (text: string, by: string, change: (text: string, by: string) => string): string => {
  if (isCrlf(text)) return change(toLf(text), toLf(by)).replaceAll("\n", "\r\n");
  return change(text, !text.includes("\r\n") && isCrlf(by) ? toLf(by) : by);
};
