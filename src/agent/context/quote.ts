export { callLine, shownCall } from "../../shared/call-line.ts";
export { excerpt, quote, quoteJson } from "../../shared/quote.ts";
