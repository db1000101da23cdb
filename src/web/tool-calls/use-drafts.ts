import { useState } from "react";
import { z } from "zod";
import { recall, remember } from "../session/storage.ts";
import type { Drafts } from "./form-result.ts";

const Kept = z.record(z.string(), z.union([z.string(), z.boolean(), z.array(z.string())]));

const keyOf = (toolCallId: string): string => `colloquy.answer.${toolCallId}`;

const keptOf = (toolCallId: string): Drafts => {
  const text = recall("tab", keyOf(toolCallId));
  try {
    const kept = Kept.safeParse(JSON.parse(text ?? "{}"));
    return kept.success ? kept.data : {};
  } catch {
    return {}; // not what this page has kept
  }
};

export const forgetDrafts = (toolCallId: string): void => remember("tab", keyOf(toolCallId), null);

/** What somebody fills in for a call. It outlives scrolling away, a change of space and a reload. */
export const useDrafts = (toolCallId: string): [Drafts, (changed: Drafts) => void] => {
  const [drafts, setDrafts] = useState(() => keptOf(toolCallId));
  const change = (changed: Drafts): void => {
    const next = { ...drafts, ...changed };
    setDrafts(next);
    remember("tab", keyOf(toolCallId), JSON.stringify(next));
  };
  return [drafts, change];
};
