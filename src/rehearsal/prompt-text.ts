import type { ModelPrompt } from "../models/language-model.ts";

/** All texts of one role in a prompt. */
export const promptText = (prompt: ModelPrompt, role: "system" | "user"): string =>
  prompt
    .flatMap((message) => {
      if (message.role !== role) return [];
      if (message.role === "system") return [message.content];
      return message.content.map((part) => (part.type === "text" ? part.text : ""));
    })
    .join("\n");
