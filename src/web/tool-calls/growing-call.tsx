import { CallFrame } from "./call-frame.tsx";
import { CallInput } from "./call-input.tsx";
import { parsePartialJson } from "./partial-json.ts";

/** A call whose input is being written: what is there of it already, as it will show. */
export const GrowingCall = ({ name, text }: { name: string; text: string }) => (
  <CallFrame name={name} chip={{ words: "Writing", tone: "busy" }}>
    <CallInput name={name} input={parsePartialJson(text)} isAsking={false} />
  </CallFrame>
);
