export { callLine, shownCall } from "../../shared/call-line.ts";
