import { useState } from "react";
import { ColloquyError, type ToolAnswer } from "../../client/index.ts";
import { useSignedIn } from "../session/signed-in.ts";
import { forgetDrafts } from "./use-drafts.ts";

export type Answering = {
  isSending: boolean;
  /** What became of the answer, where it did not count as it was given. */
  told: string | null;
  /** By the path in the result: what the space found wrong with it. */
  issues: Readonly<Record<string, string>>;
  send: (answer: ToolAnswer) => void;
};

/** A refusal as one tells it somebody who meant well. */
const tell = (error: unknown): string => {
  if (!(error instanceof ColloquyError)) return `The answer could not be sent. ${String(error)}`;
  if (error.code === "conflict") return `Thank you, but your answer came second. ${error.message}.`;
  if (error.code === "gone") return `Thank you, but it is too late. ${error.message}.`;
  if (error.code === "answer_invalid") return "Something in the answer does not fit yet.";
  return error.message;
};

const issuesOf = (error: unknown): Record<string, string> => {
  const issues = error instanceof ColloquyError && error.code === "answer_invalid" ? (error.issues ?? []) : [];
  return Object.fromEntries(issues.map(({ path, message }) => [path.replace(/^result\.?/, ""), message]));
};

/** Sends a person's answer to a call. That it counted shows by the call itself, which changes for everybody. */
export const useAnswer = (spaceId: string, toolCallId: string, onAnswered: () => void): Answering => {
  const { client } = useSignedIn();
  const [isSending, setSending] = useState(false);
  const [refusal, setRefusal] = useState<{ told: string; issues: Record<string, string> } | null>(null);
  const send = (answer: ToolAnswer): void => {
    setSending(true);
    setRefusal(null);
    client
      .answerToolCall(spaceId, toolCallId, answer)
      .then(() => {
        forgetDrafts(toolCallId);
        onAnswered();
      })
      .catch((error: unknown) => setRefusal({ told: tell(error), issues: issuesOf(error) }))
      .finally(() => setSending(false));
  };
  return { isSending, told: refusal?.told ?? null, issues: refusal?.issues ?? {}, send };
};
