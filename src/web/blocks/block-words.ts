import type { BlockChange, BlockOperation, SpaceState } from "../../client/index.ts";
import { inWords, shapeOf } from "./item-shape.ts";

/** The name of an author like `human:ent_…:edit` or `agent:ent_…`. `told`: the history's name for a non-member. */
export const authorName = (author: string, state: SpaceState, told?: string): string => {
  const [kind = "", id = ""] = author.split(":");
  if (id !== "" && id === state.you?.id) return "You";
  const member = state.members.find((each) => each.id === id);
  if (member) return member.name;
  if (told !== undefined) return told;
  if (kind === "system") return "The workspace";
  return kind === "agent" ? "An agent of another space" : "Somebody of another space";
};

const words: Record<string, string> = {
  set_text: "wrote it anew",
  append_text: "added text",
  replace_text: "replaced text",
  edit_range: "changed lines",
  patch: "changed lines",
  set_field: "set a field",
  append_to_list: "added to a field",
  remove_from_list: "took from a field",
  increment: "counted",
  push_item: "added an item",
  insert_item: "added an item",
  set_item: "changed an item",
  delete_item: "deleted an item",
  move_item: "moved an item",
  append_log_entry: "wrote an entry",
  undo: "took a change back",
  redo: "made a change again",
};

/** What a version changed, in words. */
export const changeWords = ({ author, operations }: BlockChange): string => {
  const said = [...new Set(operations.map((operation) => words[operation] ?? operation))];
  if (said.length > 0) return said.join(", ");
  return author.endsWith(":create") ? "began it" : "changed it";
};

/** What an edit was meant to do, with the written text, which a refusal must not lose. */
export const editWords = (operation: BlockOperation): { doing: string; text: string } => {
  switch (operation.op) {
    case "set_text":
    case "append_text":
      return { doing: "Your text", text: operation.text };
    case "push_item":
    case "insert_item":
    case "set_item":
      return { doing: "Your item", text: shapeOf(operation.item).words };
    case "set_field":
    case "append_to_list":
      return { doing: `Your ${operation.field}`, text: inWords(operation.value) };
    case "append_log_entry":
      return { doing: "Your entry", text: inWords(operation.entry) };
    case "undo":
      return { doing: "Undo", text: "" };
    case "redo":
      return { doing: "Redo", text: "" };
    default:
      return { doing: "Your change", text: "" };
  }
};
