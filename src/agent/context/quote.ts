export { excerpt, quote, quoteJson } from "../../shared/quote.ts";
