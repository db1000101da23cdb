import { z } from "zod";
import { wordsOfName } from "./tool-view.ts";

const mostCharacters = 600;

const Approved = z.strictObject({
  result: z.unknown(),
  approval: z.object({ by: z.array(z.string()), notes: z.array(z.string()) }),
});
const Chosen = z.union([z.strictObject({ choice: z.unknown() }), z.strictObject({ choices: z.unknown() })]);

const said = (value: unknown): string => {
  if (typeof value === "string") return value;
  if (value === null || value === undefined) return "nothing";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (Array.isArray(value)) return value.map(said).join(", ") || "nothing";
  if (typeof value !== "object") return String(value);
  const { data: chosen } = Chosen.safeParse(value);
  if (chosen) return said("choice" in chosen ? chosen.choice : chosen.choices);
  const { data: approved } = Approved.safeParse(value);
  if (approved) {
    const notes = approved.approval.notes.map((note) => `"${note}"`).join(", ");
    return `${said(approved.result)} (approved by ${approved.approval.by.join(", ")}: ${notes})`;
  }
  return (
    Object.entries(value)
      .map(([name, each]) => `${wordsOfName(name).join(" ") || name}: ${said(each)}`)
      .join("; ") || "nothing"
  );
};

/** A tool's answer, or its input, as a person would say it; a long one is cut. */
export const inWords = (value: unknown): string => {
  const words = said(value);
  return words.length <= mostCharacters ? words : `${words.slice(0, mostCharacters).toWellFormed()}…`;
};
