import { useState } from "react";
import * as z from "zod";
import { ColloquyError, type ToolAnswer } from "../../client/index.ts";
import { useSignedIn } from "../session/session.ts";
import { recall, remember } from "../storage.ts";
import type { Drafts } from "./schema-form.ts";

export type Answering = {
  isSending: boolean;
  /** Why the answer did not count as it was given; null otherwise. */
  told: string | null;
  /** What the space found wrong with the answer, by the path in the result. */
  issues: Readonly<Record<string, string>>;
  send: (answer: ToolAnswer) => void;
};

/** A refusal in kind words. */
const tell = (error: unknown): string => {
  if (!(error instanceof ColloquyError)) return `The answer could not be sent. ${String(error)}`;
  if (error.code === "conflict") return `Thank you, but your answer came second. ${error.message}.`;
  if (error.code === "approval_changed") return "It has changed since you read it. Please read it again.";
  if (error.code === "gone") return `Thank you, but it is too late. ${error.message}.`;
  if (error.code === "answer_invalid") return "Something in the answer does not fit yet.";
  return error.message;
};

const issuesOf = (error: unknown): Record<string, string> => {
  const issues = error instanceof ColloquyError && error.code === "answer_invalid" ? (error.issues ?? []) : [];
  return Object.fromEntries(issues.map(({ path, message }) => [path.replace(/^result\.?/, ""), message]));
};

/** Sends a person's answer to a call. An answer that counts shows in the call itself, which changes for everybody. */
export const useAnswer = (spaceId: string, toolCallId: string, onAnswered: () => void): Answering => {
  const { client, entityId } = useSignedIn();
  const [isSending, setSending] = useState(false);
  const [refusal, setRefusal] = useState<{ told: string; issues: Record<string, string> } | null>(null);
  const send = (answer: ToolAnswer): void => {
    setSending(true);
    setRefusal(null);
    client
      .answerToolCall(spaceId, toolCallId, answer)
      .then(() => {
        remember("tab", draftsKey(entityId, toolCallId), null);
        onAnswered();
      })
      .catch((error: unknown) => setRefusal({ told: tell(error), issues: issuesOf(error) }))
      .finally(() => setSending(false));
  };
  return { isSending, told: refusal?.told ?? null, issues: refusal?.issues ?? {}, send };
};

const Kept = z.record(z.string(), z.union([z.string(), z.boolean(), z.array(z.string())]));

const draftsKey = (entityId: string, toolCallId: string): string => `colloquy.answer.${entityId}.${toolCallId}`;

const keptDrafts = (key: string): Drafts => {
  try {
    return Kept.parse(JSON.parse(recall("tab", key) ?? "{}"));
  } catch {
    return {}; // another program wrote it
  }
};

/** The unsent answer to a call. It outlives scrolling away, a change of space and a reload. */
export const useDrafts = (toolCallId: string): [Drafts, (changed: Drafts) => void] => {
  const key = draftsKey(useSignedIn().entityId, toolCallId);
  const [drafts, setDrafts] = useState(() => keptDrafts(key));
  const change = (changed: Drafts): void => {
    const next = { ...drafts, ...changed };
    setDrafts(next);
    remember("tab", key, JSON.stringify(next));
  };
  return [drafts, change];
};
